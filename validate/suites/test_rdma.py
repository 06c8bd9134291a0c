"""Check the verbs libraries of the image, and the RDMA devices that the host gives it."""

import errno
import os
import re
from collections import Counter
from typing import Any, List

from validate.check import check, fail, skip, warn
from validate.fixtures import Measure, Situation
from validate.probes import fabric, kubernetes, sysfs, verbs_stack
from validate.probes.dlopen import loader_path
from validate.probes.files import names, under
from validate.probes.libraries import out_of_the_way
from validate.probes.native import call_functions
from validate.probes.programs import find_program
from validate.probes.verbs_remedies import modules_aside, one_build, packages_back, tools_back
from validate.process import run
from validate.remedy import ASK, Remedy, at_launch, in_image, in_shell, on_host

LAUNCH = at_launch(
    "docker run --device=/dev/infiniband --cap-add IPC_LOCK --ulimit memlock=-1 "
    "--network host IMAGE   # a pod: hostNetwork: true, capabilities.add [IPC_LOCK], and in "
    "resources.limits what the RDMA device plugin offers, such as rdma/hca: 1"
)
MODULE_PACKAGES = ("mlnx-ofed-kernel-dkms", "mlnx-ofed-kernel-modules", "kernel-mft-dkms")


def _lib_dir(image: Situation) -> str:
    return str(image.expected.os.get("lib_dir", "/usr/lib"))


def _library(image: Situation, name: str) -> str:
    return under(image.root, os.path.join(_lib_dir(image), name))


def _variant(image: Situation) -> str:
    return str(image.expected.components["rdma"].get("variant", ""))


def _loads(image: Situation, name: str) -> str:
    """Return why the loader cannot load a library; empty if it can."""
    path = name if image.root == "/" else _library(image, name)
    return call_functions(path, {}, image.env).problem


@check(
    "rdma.libs",
    "the verbs libraries load and are of the release that the recipe names",
    cause="the user space of RDMA is not in the image, or another one was installed over it",
    remedy=in_image("imagegen build", look="dpkg -l 'libibverbs*' 'librdmacm*'"),
)
def test_libs(image: Situation, measure: Measure) -> None:
    """dlopen of libibverbs.so.1 and librdmacm.so.1; the release in the real name of the libibverbs
    that dlopen finds"""
    wanted = ("libibverbs.so.1", "librdmacm.so.1")
    broken = [problem for problem in (_loads(image, name) for name in wanted) if problem]
    if broken:
        fail("; ".join(broken), remedy=packages_back(image, "libibverbs1", "librdmacm1"))
    loader = loader_path(image.root, image.env, _lib_dir(image))
    found = loader.first(wanted[0]) or _library(image, wanted[0])
    release = verbs_stack.release_of(found)
    measure("{}, release {}".format(", ".join(wanted), release or "not in their names"))
    promised = image.expected.version("rdma")
    if release and _variant(image) == "rdma-core" and release != promised:
        text = "rdma-core {} at {}, the recipe says {}"
        text = text.format(release, os.path.dirname(found), promised)
        own = os.path.realpath(os.path.dirname(_library(image, wanted[0])))
        if os.path.dirname(os.path.realpath(found)) == own:
            fail(text)
        fail(text, *out_of_the_way(image, found))


@check(
    "rdma.provider",
    "there is a provider library for each driver that the recipe names",
    cause="libibverbs is there without the provider that it loads for the card: `0 HCAs found`",
    needs=("rdma.libs",),
)
def test_provider(image: Situation, measure: Measure) -> None:
    """LIBDIR/libibverbs/lib<driver>-rdmavNN.so and the `driver` line in /etc/libibverbs.d for each
    driver of the recipe"""
    promised = [str(name) for name in image.expected.fact("rdma", "providers", ["mlx5"])]
    there = verbs_stack.providers(image.root, _lib_dir(image))
    drivers = verbs_stack.declared_drivers(image.root)
    measure(", ".join(promised))
    lost = [name for name in promised if name not in there]
    unsaid = [name for name in promised if name not in lost and not _declared(name, drivers)]
    if lost:
        text = "no library in {}/libibverbs for {}".format(_lib_dir(image), ", ".join(lost))
        fail(text, remedy=packages_back(image, "ibverbs-providers"))
    if unsaid:
        line = "echo 'driver {0}' > /etc/libibverbs.d/{0}.driver"
        text = "no file in /etc/libibverbs.d names {}".format(", ".join(unsaid))
        remedy = "; ".join(["mkdir -p /etc/libibverbs.d", *map(line.format, unsaid)])
        fail(text, "libibverbs loads only what a file there names", in_shell(remedy))


def _declared(name: str, drivers: List[str]) -> bool:
    return any(os.path.basename(driver) in (name, "lib" + name) for driver in drivers)


@check(
    "rdma.pabi",
    "libibverbs and every provider are of one build of rdma-core",
    cause=(
        "one was upgraded without the other (apt over MLNX_OFED): libibverbs ignores "
        "such a provider"
    ),
    needs=("rdma.libs", "rdma.provider"),
)
def test_pabi(image: Situation, measure: Measure) -> None:
    """IBVERBS_PRIVATE_NN in libibverbs.so.1 against the NN in name and bytes of every provider"""
    offered = verbs_stack.private_abis(_library(image, "libibverbs.so.1"))
    providers = verbs_stack.providers(image.root, _lib_dir(image)).values()
    measure("IBVERBS_PRIVATE_{} and {} providers".format(", ".join(offered), len(providers)))
    promised = image.expected.fact("rdma", "pabi")
    if len(offered) != 1 or (promised and offered != [str(promised)]):
        text = "libibverbs offers private ABI {}, the recipe says {}"
        remedy = packages_back(image, "libibverbs1", "ibverbs-providers")
        fail(text.format(", ".join(offered), promised), remedy=remedy)
    others = [p for p in providers if p.abi != offered[0] or (p.wants and p.wants != offered)]
    if others:
        seen = ["{} (rdmav{})".format(p.driver, p.abi) for p in others]
        text = "libibverbs offers {}, others: {}".format(offered[0], ", ".join(seen[:4]))
        fail(text, remedy=one_build(image, [one.path for one in others]))


@check(
    "rdma.ofed",
    "the OFED of the image is the release that the recipe names, by its own word",
    cause="another OFED was installed over it, or packages of the distribution took its place",
    remedy=in_image(
        "imagegen build", look="dpkg -l 'libibverbs*' 'rdma-core*'   # OFED's have mlnx in it"
    ),
    needs=("rdma.libs",),
)
def test_ofed(image: Situation, host: Any, measure: Measure) -> None:
    """`ofed_info -s`, such as `MLNX_OFED_LINUX-5.4-3.1.0.0:`; for DOCA the version of its
    package"""
    promised, variant = image.expected.version("rdma"), _variant(image)
    if variant not in ("mlnx-ofed", "doca"):
        skip("not-in-recipe", "the verbs stack is the distribution's")
    if variant == "doca":
        package = str(image.expected.fact("rdma", "package", "doca-ofed-userspace"))
        found = host.package(package).version if host.package(package).is_installed else ""
        measure("{} {}".format(package, found))
        if not re.match(r"{}(\D|$)".format(re.escape(promised)), found):
            fail("{} {}, the recipe says {}".format(package, found or "is not there", promised))
        return
    program = find_program("ofed_info", image.env.get("PATH", ""))
    if not program:
        fail("there is no ofed_info", "the packages of OFED are not in the image")
    result = run([program, "-s"], env=image.env)
    release = result.out.strip().rstrip(":")
    measure(release)
    if not re.search(r"-{}(\D|$)".format(re.escape(promised)), release):
        fail("{}, the recipe says {}".format(release or result.says(), promised))


@check(
    "rdma.tools",
    "the diagnostic programs that the recipe names are there",
    severity="warn",
    cause="a package of tools is missing",
)
def test_tools(image: Situation, measure: Measure) -> None:
    """the programs of the recipe on PATH"""
    promised = [str(name) for name in image.expected.fact("rdma", "tools", ["ibv_devinfo"])]
    path = image.env.get("PATH", "") + ":/usr/sbin:/sbin"
    measure(", ".join(promised))
    lost = [name for name in promised if not find_program(name, path)]
    if lost:
        fail("not there: {}".format(", ".join(lost)), remedy=tools_back(image, lost))


@check(
    "rdma.no-kmod",
    "only user space is in the image: kernel modules are the host's",
    severity="warn",
    cause="OFED was installed without --user-space-only",
    remedy=in_image("imagegen build   # installs the user space alone"),
)
def test_no_kmod(image: Situation, measure: Measure) -> None:
    """*.ko below /lib/modules and /usr/src; packages of kernel modules in dpkg's database"""
    files = verbs_stack.kernel_modules(image.root, ["/lib/modules", "/usr/src"])
    there = names(under(image.root, "/var/lib/dpkg/info"))
    packages = [name for name in MODULE_PACKAGES if name + ".list" in there]
    measure("none")
    if files or packages:
        remedy = Remedy() if packages else modules_aside(files)
        fail("; ".join((packages + files)[:4]), remedy=remedy)


@check(
    "rdma.hw",
    "the host has RDMA devices, and its kernel shows them",
    tier="live",
    cause="the card is there, its driver is not: mlx5_ib is not loaded on the host",
    remedy=on_host("modprobe mlx5_ib"),
)
def test_hw(image: Situation, measure: Measure) -> None:
    """/sys/class/infiniband, else PCI functions of vendor 0x15b3 and class 0x0207 (InfiniBand) or
    0x0200 (Ethernet, which need not carry RDMA)"""
    devices = sysfs.rdma_devices(image.root)
    measure(", ".join(devices))
    if kubernetes.launches_only(image.env) and not names(under(image.root, "/dev/infiniband")):
        skip("not-applicable", "the launcher of an MPIJob moves no data itself")
    if devices:
        return
    cards = sysfs.pci_functions(image.root, sysfs.MELLANOX, [sysfs.INFINIBAND_CLASS])
    if cards:
        fail("InfiniBand cards at {}, nothing in /sys/class/infiniband".format(", ".join(cards)))
    cards = sysfs.pci_functions(image.root, sysfs.MELLANOX, [sysfs.ETHERNET_CLASS])
    note = "; the Ethernet card at {} may carry RoCE once mlx5_ib is loaded on the host"
    skip("no-rdma-hw", "the host has no RDMA device" + (note.format(cards[0]) if cards else ""))


@check(
    "rdma.uverbs",
    "every RDMA device of the host can be opened in the container",
    tier="live",
    cause=(
        "the container was started without the device nodes; libibverbs leaves such a "
        "device out in silence"
    ),
    remedy=LAUNCH,
    needs=("rdma.hw",),
)
def test_uverbs(image: Situation, measure: Measure) -> None:
    """each /sys/class/infiniband_verbs/uverbsN: /dev/infiniband/uverbsN opens O_RDWR;
    /dev/infiniband/rdma_cm"""
    verbs = sysfs.verbs(image.root)
    lost = [one.node for one in verbs if not one.present]
    measure("{} devices in /dev/infiniband".format(len(verbs)))
    if not verbs:
        text = "{} in /sys/class/infiniband, nothing in /sys/class/infiniband_verbs"
        cause = "ib_uverbs, by which programs reach the devices, is not loaded on the host"
        seen = ", ".join(sysfs.rdma_devices(image.root))
        fail(text.format(seen), cause, on_host("modprobe ib_uverbs"))
    if len(lost) == len(verbs):
        text = "none of the host's RDMA devices ({}) is in /dev/infiniband"
        fail(text.format(len(verbs)))
    if lost:
        text = "{} of the host's {} RDMA devices were passed, {} is not here"
        fail(text.format(len(verbs) - len(lost), len(verbs), lost[0]))
    if not os.path.exists(under(image.root, "/dev/infiniband/rdma_cm")):
        fail("/dev/infiniband/rdma_cm is not there")
    for one in verbs:
        _open(under(image.root, one.node))


def _open(node: str) -> None:
    try:
        os.close(os.open(node, os.O_RDWR))
    except OSError as error:
        text = "cannot open {}: {}".format(node, (error.strerror or "").lower())
        if error.errno in (errno.EPERM, errno.EACCES):
            cause = "the node was mounted, but the device is not allowed to the container"
            fail(text, cause, LAUNCH)
        cause = "the driver on the host does not serve it"
        fail(text, cause, on_host("modprobe -r mlx5_ib; modprobe mlx5_ib", "dmesg | grep mlx"))


@check(
    "rdma.port",
    "at least one port has a link",
    tier="live",
    cause="no cable, the switch's port is down, or (InfiniBand) no subnet manager runs",
    remedy=on_host(
        "connect the port until it is Active, with the physical state LinkUp", look="ibstat"
    ).leads_to(ASK),
    needs=("rdma.hw",),
)
def test_port(image: Situation, measure: Measure) -> None:
    """/sys/class/infiniband/*/ports/*/{state,phys_state,rate,link_layer}: at least one `4: ACTIVE`;
    warns of others, and of one that is slower than another on a card of the same board_id"""
    ports = sysfs.ports(image.root)
    kinds = Counter("{} {}".format(port.rate, port.link_layer) for port in ports if port.active)
    measure(", ".join("{} x {}".format(count, kind) for kind, count in kinds.items()))
    down, slow = [port for port in ports if not port.active], fabric.slower(ports)
    if not ports:
        fail("no device has a port")
    if down:
        text = "{} of {} ports have no link: {}".format(
            len(down), len(ports), "; ".join(map(str, down))
        )
        (fail if len(down) == len(ports) else warn)(text, *fabric.why_down(down[0]))
    if slow:
        text = "slower than others of their kind: " + "; ".join(map(str, slow))
        remedy = on_host(
            "replace the cable or transceiver, or reset the switch's port",
            look="mlxlink -d {} -m".format(slow[0].device),
        ).leads_to(ASK)
        warn(text, "the link came up at a lower rate: cable, transceiver or the switch", remedy)
