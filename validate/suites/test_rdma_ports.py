"""Check what the kernel offers for RDMA, what libibverbs finds, and how NCCL will use it."""

import os
from typing import Dict, List, Tuple

from validate.check import check, fail, skip, warn
from validate.fixtures import Measure, Situation
from validate.probes import cuda, fabric, gpu, nccl
from validate.probes.aside import export, unset
from validate.probes.files import names, under
from validate.probes.gpu_scripts import ASK_DRIVER
from validate.probes.libraries import environment, libraries, nccl_copies
from validate.probes.native import ended, facts_of, run_script
from validate.probes.programs import find_program
from validate.probes.sysfs import Port, ports, verbs
from validate.process import run
from validate.remedy import ASK, Remedy, at_launch, in_image, in_shell, on_host, only_look

LOOPBACK_SECONDS = 60.0
JUMBO = 4200
"""The smallest MTU of an interface that carries RoCE packets of 4096 bytes."""
GOOD_SHARE = 0.8
LOOPBACK = "ib_write_bw -d {0} -F --report_gbits & ib_write_bw -d {0} -F localhost"
LINK = "mlxlink -d {0}; lspci -vv -s $(basename $(readlink /sys/class/infiniband/{0}/device))"
LAUNCH = at_launch("docker run --network host IMAGE   # a pod: hostNetwork, or a VF of the NIC")


@check(
    "rdma.kabi",
    "the kernel's RDMA drivers speak an ABI that the libraries of the image understand",
    tier="live",
    cause="the user space of the image and the driver of the host are of very different age",
    remedy=in_image("imagegen request rdma=… ofed=…   # of the age of the host's driver"),
    needs=("rdma.hw", "rdma.uverbs"),
)
def test_kabi(image: Situation, measure: Measure) -> None:
    """/sys/class/infiniband_verbs/abi_version (3 to 6) and uverbsN/abi_version of each device"""
    kernel, devices = fabric.kernel_abi(image.root), fabric.device_abis(image.root)
    kinds = sorted({(name.partition("_")[0], abi) for name, abi in devices})
    measure("kernel {}, {}".format(kernel, ", ".join("{} {}".format(*pair) for pair in kinds)))
    if kernel and not fabric.within(kernel, fabric.KERNEL_ABI):
        fail("the kernel speaks ABI {}, libibverbs {} to {}".format(kernel, *fabric.KERNEL_ABI))
    for device, abi in devices:
        limits = fabric.DEVICE_ABI.get(device.partition("_")[0], (0, 99))
        if abi and not fabric.within(abi, limits):
            fail("{} speaks ABI {}, its provider {} to {}".format(device, abi, *limits))


@check(
    "rdma.devinfo",
    "libibverbs enumerates every device that was passed",
    tier="live",
    cause="libibverbs left a device out: its provider did not load, or its node cannot be opened",
    remedy=only_look("IBV_SHOW_WARNINGS=1 ibv_devinfo"),
    needs=("rdma.uverbs", "rdma.provider", "rdma.pabi", "rdma.kabi"),
)
def test_devinfo(image: Situation, measure: Measure) -> None:
    """ibv_get_device_list of libibverbs.so.1 in a process of its own, with IBV_SHOW_WARNINGS=1,
    against the nodes in /dev/infiniband"""
    path = libraries(image).loader.first("libibverbs.so.1")
    env = dict(environment(image, path), IBV_SHOW_WARNINGS="1")
    result = run_script(fabric.COUNT_DEVICES, [path], env)
    if not result.ok:
        fail(ended(path, result))
    count = int(facts_of(result).get("count", 0))
    usable = [one for one in verbs(image.root) if one.present]
    measure("{} devices".format(count))
    if count != len(usable):
        warnings = [line for line in result.err.splitlines() if "ibverbs" in line]
        text = "libibverbs lists {} devices, {} were passed".format(count, len(usable))
        fail("; ".join([text, *warnings[:2]]))


def _roce(image: Situation) -> List[Port]:
    found = fabric.roce_ports(image.root)
    if not found:
        kinds = sorted({port.link_layer for port in ports(image.root)})
        skip("not-applicable", "there is no RoCE: ports are {}".format(", ".join(kinds) or "none"))
    return found


def _nccl_release(image: Situation) -> str:
    """Return the oldest NCCL of the image; empty if there is none."""
    found = [one.version for one in nccl_copies(image) if one.version]
    return min(found, key=cuda.numbers) if found else ""


@check(
    "rdma.netns",
    "the addresses of RoCE ports can be read in the container's network",
    tier="live",
    cause="the container has a network namespace of its own, without the interfaces of the NICs",
    remedy=LAUNCH,
    needs=("rdma.uverbs", "rdma.port"),
)
def test_netns(image: Situation, measure: Measure) -> None:
    """/sys/class/infiniband/*/ports/*/gid_attrs/types/*: if the kernel refuses all of a port
    (EINVAL), its interface is in another network namespace; NCCL 2.21 to 2.25 abort then"""
    found = [(port, fabric.gids(image.root, port)) for port in _roce(image)]
    measure("{} rows on {} ports".format(sum(len(table) for _, table in found), len(found)))
    blind = [port.device for port, table in found if not table]
    if blind:
        fail("no address can be read of {}".format(", ".join(blind)))


@check(
    "rdma.gid",
    "NCCL uses a RoCE v2 address on every port",
    tier="live",
    cause="row 0 of the table is RoCE v1 and link-local: it does not cross a router",
    needs=("rdma.netns",),
)
def test_gid(image: Situation, measure: Measure) -> None:
    """gids/N, gid_attrs/types/N and ndevs/N of each active Ethernet port, against
    $NCCL_IB_GID_INDEX, nccl.conf and the default of the image's NCCL"""
    tables = [(port, fabric.gids(image.root, port)) for port in _roce(image)]
    best = {port.device: fabric.best_index(table) for port, table in tables}
    seen = ", ".join("{} {}".format(d, "none" if n is None else n) for d, n in best.items())
    measure("RoCE v2 with IPv4: " + seen)
    wanted = sorted({n for n in best.values() if n is not None})
    row = export({"NCCL_IB_GID_INDEX": str(wanted[0] if wanted else 3)})
    asked = nccl.settings(image.root, image.env).get("NCCL_IB_GID_INDEX", ("", ""))[0]
    if asked and asked != "-1":
        _asked_row(tables, asked, row)
    if not wanted:
        why = "the interface of the port has no IPv4 address"
        remedy = on_host("give the interface of the port an IPv4 address", "ip address show")
        warn("no RoCE v2 address with IPv4: " + seen, why, remedy.leads_to(ASK))
    release = _nccl_release(image)
    early = bool(release) and cuda.numbers(release) < fabric.PICKS_GID_ITSELF
    if early and not asked and wanted != [0]:
        text = "NCCL {} takes row 0, RoCE v2 is in {}"
        warn(text.format(release, seen), "", row)
    if len(wanted) > 1 and (asked or early):
        warn("the row differs from device to device: " + seen, "", unset(["NCCL_IB_GID_INDEX"]))


def _asked_row(tables: List[Tuple[Port, List[fabric.Gid]]], asked: str, right: Remedy) -> None:
    for port, table in tables:
        kinds: Dict[str, str] = {str(row.number): row.kind for row in table}
        if kinds.get(asked) != fabric.ROCE_V2:
            text = "NCCL_IB_GID_INDEX={}: that row of {} is {}"
            fail(text.format(asked, port.device, kinds.get(asked) or "empty"), "", right)


@check(
    "rdma.hca",
    "the devices that NCCL is told to use are here and have a link",
    tier="live",
    cause="the name is of another machine: NCCL finds no device then, and uses sockets in silence",
    needs=("rdma.port",),
)
def test_hca(image: Situation, measure: Measure) -> None:
    """$NCCL_IB_HCA and nccl.conf (prefixes, ^, =) against the devices of /sys/class/infiniband that
    have an active port"""
    wanted, place = nccl.settings(image.root, image.env).get("NCCL_IB_HCA", ("", ""))
    there = list(dict.fromkeys(port.device for port in ports(image.root) if port.active))
    if not wanted:
        skip("not-applicable", "no device is named: NCCL takes every one")
    chosen = nccl.chosen_interfaces(wanted, there)
    measure("NCCL_IB_HCA={}: {}".format(wanted, ", ".join(chosen)))
    if not chosen:
        text = "NCCL_IB_HCA={}, but there is {}".format(wanted, ", ".join(there))
        fail(text, remedy=in_shell(nccl.removal("NCCL_IB_HCA", place)))


@check(
    "rdma.mtu",
    "the interfaces below RoCE carry packets of 4096 bytes",
    severity="warn",
    tier="live",
    cause="the interface has the default MTU of 1500: RoCE goes down to 1024",
    needs=("rdma.netns",),
)
def test_mtu(image: Situation, measure: Measure) -> None:
    """/sys/class/net/NDEV/mtu of the interface of each active Ethernet port, at least 4200"""
    devices = {r.device for p in _roce(image) for r in fabric.gids(image.root, p) if r.device}
    found = {name: fabric.interface_mtu(image.root, name) for name in sorted(devices)}
    measure(", ".join("{} {}".format(*pair) for pair in found.items()))
    small = [name for name, mtu in found.items() if 0 < mtu < JUMBO]
    if small:
        seen = ["{} {}".format(name, found[name]) for name in small]
        text = "ip link set {} mtu 9000   # and on the switch"
        fail(", ".join(seen), remedy=on_host(text.format(small[0])).leads_to(ASK))


@check(
    "rdma.gdr",
    "NICs read and write the memory of GPUs directly",
    severity="warn",
    tier="live",
    cause="the host's kernel has no module for it: all traffic goes through host memory",
    remedy=on_host("modprobe nvidia-peermem   # nv_peer_mem before driver 470"),
    needs=("rdma.uverbs", "gpu.nodes"),
)
def test_gdr(image: Situation, measure: Measure) -> None:
    """the files that the image's NCCL looks at (memory_peers/nv_mem, nvidia_peermem), and
    /proc/modules, and DMA-BUF: cuDeviceGetAttribute 124 with kernel 5.12 or later"""
    if not cuda.gpus(image.root):
        skip("no-gpu-hw", "the host has no NVIDIA GPU")
    release = _nccl_release(image)
    found, loaded = fabric.peer_memory(image.root, release), fabric.modules(image.root)
    measure(", ".join(found + loaded))
    if found:
        return
    if _dma_buf(image):
        measure("DMA-BUF")
        return
    if loaded:
        text = "{} is loaded, NCCL {} does not see it"
        cause = "this NCCL looks for {}, which the module does not make"
        places = " or ".join(fabric.peer_memory_places(release))
        remedy = in_image("imagegen request nccl='>=2.23.4' …   # it looks for nvidia_peermem")
        fail(text.format(", ".join(loaded), release or "here"), cause.format(places), remedy)
    fail("neither nvidia_peermem nor nv_peer_mem is loaded, and no DMA-BUF")


def _dma_buf(image: Situation) -> bool:
    path = libraries(image).loader.first(gpu.DRIVER)
    if not path or cuda.numbers(os.uname().release)[:2] < (5, 12):
        return False
    answer = image.once(
        "driver", lambda: gpu.ask_library(ASK_DRIVER, path, environment(image, path))
    )
    return bool(answer.facts.get("dma_buf"))


@check(
    "rdma.numa",
    "which processor's memory GPUs and NICs hang at",
    severity="info",
    tier="live",
    needs=("rdma.hw",),
)
def test_numa(image: Situation, measure: Measure) -> None:
    """numa_node of /sys/class/infiniband/*/device and of every GPU in /sys/bus/pci/devices"""
    both = {**fabric.hca_nodes(image.root), **fabric.numa_nodes(image.root, cuda.gpus(image.root))}
    measure(", ".join("{} node {}".format(name, node or "?") for name, node in both.items()))


@check(
    "rdma.loopback",
    "data moves through every port that has a link, at its rate",
    severity="warn",
    tier="asked",
    cause="the link runs below its rate, its PCIe slot is narrow, or memory cannot be pinned",
    remedy=only_look(LOOPBACK.format("mlx5_0")),
    needs=("rdma.devinfo", "rdma.port"),
)
def test_loopback(image: Situation, measure: Measure) -> None:
    """`ib_write_bw -d DEVICE -F --report_gbits -s 1048576 -n 1000` against itself over each active
    port, at least 80 % of the port's rate"""
    if not find_program("ib_write_bw", image.env.get("PATH", "")):
        skip("not-installed", "there is no ib_write_bw")
    image.once("counters before", lambda: fabric.errors(image.root))
    slow, seen = [], []
    for port in [one for one in ports(image.root) if one.active]:
        table = fabric.gids(image.root, port) if port.link_layer == "Ethernet" else []
        if port.link_layer == "Ethernet" and not table:
            skip("blocked-by", "rdma.netns")
        script = fabric.loopback_script(port, fabric.best_index(table))
        result = run(["sh", "-c", script], LOOPBACK_SECONDS, image.env)
        if not result.ok:
            text = "{}: {}".format(port.device, result.says())
            fail(
                text,
                "data does not move through the device",
                only_look(LOOPBACK.format(port.device)),
            )
        speed, rate = fabric.parse_bandwidth(result.out), fabric.gigabits(port.rate)
        seen.append("{} {:.1f} of {:.0f} Gb/s".format(port.device, speed, rate))
        slow += [(port.device, seen[-1])] if speed < GOOD_SHARE * rate else []
    measure(", ".join(seen))
    if slow:
        text = ", ".join(problem for _, problem in slow)
        fail(text, "the link, or its PCIe slot, is narrow", only_look(LINK.format(slow[0][0])))


@check(
    "rdma.counters",
    "no link error was counted while data moved",
    severity="warn",
    tier="asked",
    cause="a cable, a transceiver or the switch's port is bad, or the fabric drops packets",
    remedy=on_host("replace the cable or transceiver of the port", "ibqueryerrors").leads_to(ASK),
    needs=("rdma.loopback",),
)
def test_counters(image: Situation, measure: Measure) -> None:
    """ports/*/counters/{link_downed,symbol_error} and hw_counters/{out_of_sequence,packet_seq_err,
    local_ack_timeout_err,rnr_nak_retry_err}, before and after rdma.loopback"""
    now = fabric.errors(image.root)
    before = image.once("counters before", lambda: now)
    more = {name: count - before.get(name, 0) for name, count in now.items()}
    measure("{} counters, none went up".format(len(now)))
    if not now:
        skip("not-installed", "the driver counts nothing: {}".format(
            ", ".join(names(under(image.root, "/sys/class/infiniband")))))  # fmt: skip
    rising = ["{} +{}".format(name, count) for name, count in more.items() if count > 0]
    if rising:
        fail(", ".join(rising))
