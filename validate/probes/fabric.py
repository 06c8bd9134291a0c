"""Measure RDMA ports in use: GID tables, network interfaces, peer memory, counters, a loopback.

Paths: the kernel's Documentation/ABI/stable/sysfs-class-infiniband. What NCCL looks for:
NVIDIA/nccl, src/transport/net_ib.cc of its release tags. ABI numbers: rdma-core's kernel headers.
"""

import os
import re
from typing import Dict, List, NamedTuple, Optional, Tuple

from validate.probes.cuda import numbers
from validate.probes.files import names, read, under
from validate.probes.sysfs import Port, ports
from validate.remedy import ASK, Remedy, on_host

ROCE_V2 = "RoCE v2"
KERNEL_ABI = (3, 6)
"""IB_USER_VERBS_MIN_ABI_VERSION and ..._MAX_... of libibverbs."""
DEVICE_ABI = {"mlx5": (1, 1), "mlx4": (3, 4)}
"""Driver -> the ABIs of its kernel part that its provider understands, lowest and highest."""

PICKS_GID_ITSELF = (2, 21)
"""From this release on NCCL finds the RoCE v2 index itself; before, it takes 0."""

ERRORS = (
    "link_downed",
    "symbol_error",
    "out_of_sequence",
    "packet_seq_err",
    "local_ack_timeout_err",
    "rnr_nak_retry_err",
)

COUNT_DEVICES = """
import ctypes, json, sys
lib = ctypes.CDLL(sys.argv[1])
count = ctypes.c_int(0)
lib.ibv_get_device_list.restype = ctypes.c_void_p
lib.ibv_get_device_list(ctypes.byref(count))
sys.stdout.flush()
print("\\n" + json.dumps({"count": count.value}))
"""


class Gid(NamedTuple):
    """Hold a row of the GID table of a port."""

    number: int
    gid: str
    kind: str
    device: str

    @property
    def routable(self) -> bool:
        """Return whether this is RoCE v2 with an IPv4 address (RFC 4291: ::ffff:a.b.c.d)."""
        return self.kind == ROCE_V2 and self.gid.startswith("0000:0000:0000:0000:0000:ffff:")


def _port(root: str, port: Port) -> str:
    return under(root, "/sys/class/infiniband/{}/ports/{}".format(port.device, port.number))


def roce_ports(root: str) -> List[Port]:
    """List the Ethernet ports with a link."""
    return [one for one in ports(root) if one.active and one.link_layer == "Ethernet"]


def gids(root: str, port: Port) -> List[Gid]:
    """List the filled rows of the GID table of a port.

    The kernel refuses (EINVAL) to give the type of an empty row, or of a row whose interface is in
    another network namespace. Such rows are left out.
    """
    top = _port(root, port)
    found = []
    for name in sorted(names(os.path.join(top, "gids")), key=int):
        kind = read(os.path.join(top, "gid_attrs/types", name))
        if kind:
            device = read(os.path.join(top, "gid_attrs/ndevs", name))
            found.append(Gid(int(name), read(os.path.join(top, "gids", name)), kind, device))
    return found


def best_index(table: List[Gid]) -> Optional[int]:
    """Return the row that NCCL_IB_GID_INDEX should name; None if no row is routable."""
    return next((row.number for row in table if row.routable), None)


def kernel_abi(root: str) -> str:
    """Return the ABI version of the kernel's verbs; empty if the kernel has none."""
    return read(under(root, "/sys/class/infiniband_verbs/abi_version"))


def device_abis(root: str) -> List[Tuple[str, str]]:
    """List (device, ABI of its kernel driver)."""
    top = under(root, "/sys/class/infiniband_verbs")
    found = []
    for name in names(top):
        device = read(os.path.join(top, name, "ibdev"))
        if device:
            found.append((device, read(os.path.join(top, name, "abi_version"))))
    return found


def within(number: str, limits: Tuple[int, int]) -> bool:
    """Return whether a text is a number between two limits, both included."""
    return number.isdigit() and limits[0] <= int(number) <= limits[1]


def peer_memory_places(nccl: str) -> List[str]:
    """List the files by which an NCCL of this version sees that the kernel registers GPU memory."""
    top = "/sys/kernel/mm/memory_peers/"
    places = [top + "nv_mem/version"]
    release = numbers(nccl) or (99,)
    if (2, 9, 8) <= release < (2, 22):
        places.append(top + "nvidia-peermem/version")
    if release >= (2, 22):
        places.append(top + "nv_mem_nc/version")
    if release >= (2, 23, 4):
        places.append("/sys/module/nvidia_peermem/version")
    return places


def peer_memory(root: str, nccl: str) -> List[str]:
    """List those of these files that exist."""
    return [path for path in peer_memory_places(nccl) if os.path.exists(under(root, path))]


def modules(root: str) -> List[str]:
    """List the loaded kernel modules for peer memory."""
    loaded = {line.split()[0] for line in read(under(root, "/proc/modules"), 1 << 22).splitlines()}
    return [name for name in ("nvidia_peermem", "nv_peer_mem") if name in loaded]


def interface_mtu(root: str, device: str) -> int:
    """Return the MTU of a network interface; 0 if it is not known."""
    mtu = read(under(root, "/sys/class/net/{}/mtu".format(device)))
    return int(mtu) if mtu.isdigit() else 0


def numa_nodes(root: str, functions: List[str]) -> Dict[str, str]:
    """Map PCI addresses to their NUMA nodes."""
    top = "/sys/bus/pci/devices"
    return {one: read(under(root, os.path.join(top, one, "numa_node"))) for one in functions}


def hca_nodes(root: str) -> Dict[str, str]:
    """Map RDMA devices to their NUMA nodes."""
    top = "/sys/class/infiniband"
    return {
        one: read(under(root, os.path.join(top, one, "device/numa_node")))
        for one in names(under(root, top))
    }


def errors(root: str) -> Dict[str, int]:
    """Count errors since the driver was loaded: `mlx5_0/1 link_downed` -> count."""
    found = {}
    for port in ports(root):
        for folder in ("counters", "hw_counters"):
            for name in ERRORS:
                count = read(os.path.join(_port(root, port), folder, name))
                if count.isdigit():
                    found["{}/{} {}".format(port.device, port.number, name)] = int(count)
    return found


def gigabits(rate: str) -> float:
    """Convert a rate to Gb/s: `100 Gb/sec (4X EDR)` is 100."""
    match = re.match(r"([\d.]+) Gb/sec", rate)
    return float(match.group(1)) if match else 0.0


def why_down(port: Port) -> Tuple[str, Remedy]:
    """Return cause and remedy of a port without a link, from its states.

    InfiniBand specification, vol. 1, PortInfo: Disabled, Polling and Sleep concern the cable; INIT
    waits for a subnet manager.
    """
    physical = port.physical.partition(": ")[2]
    ethernet = port.link_layer == "Ethernet"
    on = "mlxlink -d {} --port_state UP"
    if ethernet:
        on = "ip link set $(ls /sys/class/infiniband/{}/device/net) up"
    if physical == "Disabled":
        return "the port is switched off", on_host(on.format(port.device))
    if physical == "LinkUp" and ethernet:
        return "the link is there, its network interface is down", on_host(on.format(port.device))
    if physical == "LinkUp" or port.state.endswith("INIT"):
        looking = "sminfo -C {}".format(port.device)
        remedy = on_host("systemctl start opensm   # or the fabric's own manager", look=looking)
        return "no subnet manager has set the port up", remedy.leads_to(ASK)
    looking = "mlxlink -d {} -m".format(port.device)
    remedy = on_host("replace the cable or transceiver, or reset the switch's port", look=looking)
    cause = "nothing answers at the other end: cable, transceiver or the switch's port"
    return cause, remedy.leads_to(ASK)


def slower(found: List[Port]) -> List[Port]:
    """List the active ports that are slower than the fastest one on a card of the same model."""
    best: Dict[Tuple[str, str], float] = {}
    for port in found:
        kind = (port.board, port.link_layer)
        best[kind] = max(best.get(kind, 0.0), gigabits(port.rate) if port.active else 0.0)
    return [
        port
        for port in found
        if port.active and port.board and gigabits(port.rate) < best[port.board, port.link_layer]
    ]


def loopback_script(port: Port, index: Optional[int]) -> str:
    """Return a shell script that runs ib_write_bw against itself over one port."""
    base = "ib_write_bw -d {} -i {} -F --report_gbits -s 1048576 -n 1000"
    command = base.format(port.device, port.number)
    command += " -x {}".format(index) if index is not None else ""
    return "{0} > /dev/null & sleep 1; {0} localhost; code=$?; wait; exit $code".format(command)


def parse_bandwidth(text: str) -> float:
    """Read the average of the only row that ib_write_bw prints, in Gb/s; 0 if there is no row."""
    row = r"^[ \t]*\d+[ \t]+\d+[ \t]+[\d.]+[ \t]+([\d.]+)[ \t]+[\d.]+[ \t]*$"
    rows = re.findall(row, text, re.MULTILINE)
    return float(rows[-1]) if rows else 0.0
