"""Make up whole machines as a container sees them in /sys, /proc and /dev.

PCI classes and ids: pci.ids. /sys/class/infiniband: the kernel's
Documentation/ABI/stable/sysfs-class-infiniband. HARP: Tencent Cloud's documents on TACO Train.
Shapes: DGX A100 (8 GPUs, 6 NVSwitches, RoCE), DGX H100 (8 GPUs, 4 NVSwitches, InfiniBand), GN10Xp
(8 V100, virtio NICs).
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from unit.validate.gpu_machines import write

if TYPE_CHECKING:
    from pathlib import Path

A100, H100, V100 = "0x20b0", "0x2330", "0x1db5"
SWITCHES = {A100: "0x1af1", H100: "0x22a3"}
"""The NVSwitch of a generation of GPUs."""
CARDS = {
    "HDR": ("0x101b", "MT4123", "20.31.1014", "MT_0000000223"),
    "NDR": ("0x1021", "MT4129", "28.39.1002", "MT_0000000838"),
}
"""Device id, hca_type, firmware and board_id of ConnectX-6 and ConnectX-7."""
ALL_CAPABILITIES, PLAIN_CAPABILITIES = "000001ffffffffff", "00000000a80425fb"


def pci(root: Path, address: str, vendor: str, device: str, kind: str, numa: int = 0) -> None:
    """Put a function on the host's bus."""
    top = f"/sys/bus/pci/devices/{address}"
    said = {"vendor": vendor, "device": device, "class": kind, "numa_node": str(numa)}
    for name, value in said.items():
        write(root, f"{top}/{name}", f"{value}\n")


def gpus(root: Path, count: int, device: str, driver: str) -> None:
    """Put GPUs on the bus and the driver in the kernel, without device nodes."""
    for number in range(count):
        pci(root, f"0000:{0x10 + number:02x}:00.0", "0x10de", device, "0x030200", number * 2 // 8)
    text = f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {driver}  Tue Jan  1 UTC 2024\n"
    write(root, "/proc/driver/nvidia/version", text)


def switches(root: Path, count: int, kind: str) -> None:
    for number in range(count):
        pci(root, f"0000:{0xC0 + number:02x}:00.0", "0x10de", SWITCHES[kind], "0x068000")


def interfaces(root: Path, *names: str) -> None:
    """Make network interfaces that are up, and `lo`, which does not say."""
    for name in ("lo", *names):
        write(root, f"/sys/class/net/{name}/operstate", "unknown\n" if name == "lo" else "up\n")
        write(root, f"/sys/class/net/{name}/mtu", "65536\n" if name == "lo" else "1500\n")


def pass_gpus(root: Path, count: int) -> None:
    """Make the device nodes that the container toolkit makes."""
    for node in ["nvidiactl", "nvidia-uvm", *(f"nvidia{n}" for n in range(count))]:
        write(root, f"/dev/{node}")


class Hca:
    """Hold an RDMA device with one port."""

    def __init__(self, root: Path, number: int, layer: str, rate: str) -> None:
        self.root, self.name, self.number = root, f"mlx5_{number}", number
        self.top = f"/sys/class/infiniband/{self.name}"
        self.port = f"{self.top}/ports/1"
        address = f"0000:{0x80 + number:02x}:00.0"
        kind = "0x020700" if layer == "InfiniBand" else "0x020000"
        card, model, firmware, board = CARDS["NDR" if "NDR" in rate else "HDR"]
        pci(root, address, "0x15b3", card, kind, number // 4)
        said = {"node_type": "1: CA", "hca_type": model, "fw_ver": firmware, "board_id": board}
        said |= {"device/numa_node": str(number // 4)}
        for name, value in said.items():
            write(root, f"{self.top}/{name}", f"{value}\n")
        self.state("4: ACTIVE", "5: LinkUp", rate)
        write(root, f"{self.port}/link_layer", f"{layer}\n")
        write(root, f"{self.port}/lid", "0x1\n" if layer == "InfiniBand" else "0x0\n")
        for counter in ("link_downed", "symbol_error"):
            write(root, f"{self.port}/counters/{counter}", "0\n")
        for counter in ("out_of_sequence", "packet_seq_err", "local_ack_timeout_err"):
            write(root, f"{self.port}/hw_counters/{counter}", "0\n")
        verbs = f"/sys/class/infiniband_verbs/uverbs{number}"
        write(root, f"{verbs}/ibdev", f"{self.name}\n")
        write(root, f"{verbs}/abi_version", "1\n")
        write(root, "/sys/class/infiniband_verbs/abi_version", "6\n")

    def state(self, state: str, physical: str, rate: str) -> None:
        for name, value in {"state": state, "phys_state": physical, "rate": rate}.items():
            write(self.root, f"{self.port}/{name}", f"{value}\n")

    def gid(self, index: int, gid: str, kind: str, device: str) -> None:
        write(self.root, f"{self.port}/gids/{index}", f"{gid}\n")
        write(self.root, f"{self.port}/gid_attrs/types/{index}", f"{kind}\n")
        write(self.root, f"{self.port}/gid_attrs/ndevs/{index}", f"{device}\n")

    def roce(self, device: str) -> None:
        """Make the four entries that mlx5 makes for an interface with one IPv4 address."""
        local = "fe80:0000:0000:0000:0e42:a1ff:fe00:0001"
        mapped = f"0000:0000:0000:0000:0000:ffff:0a00:{self.number + 1:04x}"
        pairs = [(local, "IB/RoCE v1"), (local, "RoCE v2"), (mapped, "IB/RoCE v1")]
        for index, (gid, kind) in enumerate([*pairs, (mapped, "RoCE v2")]):
            self.gid(index, gid, kind, device)
        write(self.root, f"/sys/class/net/{device}/operstate", "up\n")
        write(self.root, f"/sys/class/net/{device}/mtu", "4200\n")

    def pass_node(self) -> None:
        write(self.root, f"/dev/infiniband/uverbs{self.number}")
        write(self.root, "/dev/infiniband/rdma_cm")


def capabilities(root: Path, bits: str) -> None:
    write(root, "/proc/self/status", f"Name:\tpython3\nCapEff:\t{bits}\nSeccomp:\t0\n")


def a100_roce(root: Path) -> list[Hca]:
    """Make a machine with 8 x A100 and 8 x 200 Gb/s RoCE, all of it passed."""
    gpus(root, 8, A100, "470.57.02")
    switches(root, 6, A100)
    interfaces(root, "bond0")
    pass_gpus(root, 8)
    hcas = [Hca(root, n, "Ethernet", "200 Gb/sec (4X HDR)") for n in range(8)]
    for hca in hcas:
        hca.roce(f"eth{hca.number}")
        hca.pass_node()
    write(root, "/proc/modules", "nvidia_peermem 16384 0 - Live 0x0\nnvidia 1 0 - Live 0x0\n")
    write(root, "/sys/kernel/mm/memory_peers/nv_mem/version", "1.1-0\n")
    write(root, "/sys/module/nvidia_peermem/version", "470.57.02\n")
    capabilities(root, ALL_CAPABILITIES)
    return hcas


def h100_infiniband(root: Path) -> list[Hca]:
    """Make a machine with 8 x H100 and 8 x 400 Gb/s InfiniBand, all of it passed."""
    gpus(root, 8, H100, "550.54.14")
    switches(root, 4, H100)
    interfaces(root, "eth0", *(f"ib{n}" for n in range(8)))
    pass_gpus(root, 8)
    hcas = [Hca(root, n, "InfiniBand", "400 Gb/sec (4X NDR)") for n in range(8)]
    for hca in hcas:
        hca.gid(0, "fe80:0000:0000:0000:e8eb:d303:0012:3456", "IB/RoCE v1", "")
        hca.pass_node()
    write(root, "/proc/modules", "nvidia_peermem 16384 0 - Live 0x0\n")
    write(root, "/sys/module/nvidia_peermem/version", "550.54.14\n")
    capabilities(root, ALL_CAPABILITIES)
    return hcas


def v100_harp(root: Path) -> None:
    """Make 8 x V100 of a cloud, 9 virtio NICs, and HARP on the host: 50 huge pages of 1 GiB."""
    gpus(root, 8, V100, "470.82.01")
    pass_gpus(root, 8)
    interfaces(root, "eth0")
    for number in range(9):
        pci(root, f"0000:00:{5 + number:02x}.0", "0x1af4", "0x1000", "0x020000")
        write(root, f"/usr/local/tfabric/tools/config/ztcp{number}.conf", "port=1\n")
    top = "/sys/kernel/mm/hugepages/hugepages-1048576kB"
    write(root, f"{top}/nr_hugepages", "50\n")
    write(root, f"{top}/free_hugepages", "50\n")
    write(root, "/proc/meminfo", "HugePages_Total:      50\nHugepagesize:    1048576 kB\n")
    mount = "hugetlbfs /dev/hugepages hugetlbfs rw,relatime,pagesize=1024M 0 0\n"
    write(root, "/proc/mounts", mount)
    (root / "dev/hugepages").mkdir(parents=True, exist_ok=True)
    capabilities(root, ALL_CAPABILITIES)


def pod_without_devices(root: Path) -> None:
    """Make a pod on the A100 node that asked for no device.

    /sys and /proc/driver are the host's, /dev has no device, and the network is its own, so the
    rows of the GID tables cannot be read.
    """
    hcas = a100_roce(root)
    for path in (root / "dev").iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.rmtree(root / "sys/class/net")
    interfaces(root, "eth0")
    for hca in hcas:
        shutil.rmtree(root / f"{hca.port}/gid_attrs".lstrip("/"))
    (root / "var/run/secrets/kubernetes.io").mkdir(parents=True)
    capabilities(root, PLAIN_CAPABILITIES)


def port_down(root: Path) -> None:
    """Make the H100 node with one of its eight ports down."""
    h100_infiniband(root)[3].state("1: DOWN", "2: Polling", "10 Gb/sec (4X SDR)")


def all_ports_down(root: Path) -> None:
    for hca in h100_infiniband(root):
        hca.state("1: DOWN", "2: Polling", "10 Gb/sec (4X SDR)")
