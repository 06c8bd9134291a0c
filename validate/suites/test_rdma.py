"""RDMA: the verbs stack of the image, and the devices that the host gives it."""

import ctypes
import os
import re
from typing import Any, List

from validate.check import check, fail, skip, warn
from validate.plugin import Measure, Situation
from validate.probes import sysfs, verbs_stack
from validate.probes.files import names, under
from validate.probes.programs import first
from validate.process import run

LAUNCH = (
    "docker run --device=/dev/infiniband --cap-add IPC_LOCK --ulimit memlock=-1 "
    "--network host IMAGE"
)
MODULE_PACKAGES = ("mlnx-ofed-kernel-dkms", "mlnx-ofed-kernel-modules", "kernel-mft-dkms")


def _lib_dir(image: Situation) -> str:
    return str(image.expected.os.get("lib_dir", "/usr/lib"))


def _library(image: Situation, name: str) -> str:
    return under(image.root, os.path.join(_lib_dir(image), name))


def _variant(image: Situation) -> str:
    return str(image.expected.components["rdma"].get("variant", ""))


def _loads(image: Situation, name: str) -> str:
    """Why the loader cannot load a library; empty where it can."""
    try:
        ctypes.CDLL(name if image.root == "/" else _library(image, name))
    except OSError as error:
        return str(error)
    return ""


@check(
    "rdma.libs",
    "the verbs libraries load and are of the release that the recipe names",
    cause="the user space of RDMA is not in the image, or another one was installed over it",
    remedy="apt-get install --reinstall libibverbs1 librdmacm1",
)
def test_libs(image: Situation, measure: Measure) -> None:
    """dlopen of libibverbs.so.1 and librdmacm.so.1; the release in the real name of libibverbs"""
    wanted = ("libibverbs.so.1", "librdmacm.so.1")
    broken = [problem for problem in (_loads(image, name) for name in wanted) if problem]
    if broken:
        fail("; ".join(broken))
    release = verbs_stack.release_of(_library(image, wanted[0]))
    measure("{}, release {}".format(", ".join(wanted), release or "not in their names"))
    promised = image.expected.version("rdma")
    if release and _variant(image) == "rdma-core" and release != promised:
        fail("rdma-core {}, the recipe says {}".format(release, promised))


@check(
    "rdma.provider",
    "there is a provider library for each driver that the recipe names",
    cause="libibverbs is there without the provider that it loads for the card: `0 HCAs found`",
    remedy="apt-get install --reinstall ibverbs-providers",
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
        fail("no library in {}/libibverbs for {}".format(_lib_dir(image), ", ".join(lost)))
    if unsaid:
        fail("no file in /etc/libibverbs.d names {}".format(", ".join(unsaid)))


def _declared(name: str, drivers: List[str]) -> bool:
    return any(os.path.basename(driver) in (name, "lib" + name) for driver in drivers)


@check(
    "rdma.pabi",
    "libibverbs and every provider are of one build of rdma-core",
    cause=(
        "one was upgraded without the other (apt over MLNX_OFED): libibverbs ignores "
        "such a provider"
    ),
    remedy="apt-get install --reinstall libibverbs1 ibverbs-providers",
    needs=("rdma.libs", "rdma.provider"),
)
def test_pabi(image: Situation, measure: Measure) -> None:
    """IBVERBS_PRIVATE_NN in libibverbs.so.1 against the NN in name and bytes of every provider"""
    offered = verbs_stack.private_abis(_library(image, "libibverbs.so.1"))
    providers = verbs_stack.providers(image.root, _lib_dir(image)).values()
    measure("IBVERBS_PRIVATE_{} and {} providers".format(", ".join(offered), len(providers)))
    promised = image.expected.fact("rdma", "pabi")
    if len(offered) != 1 or (promised and offered != [str(promised)]):
        fail(
            "libibverbs offers private ABI {}, the recipe says {}".format(
                ", ".join(offered), promised
            )
        )
    others = [p for p in providers if p.abi != offered[0] or (p.wants and p.wants != offered)]
    if others:
        seen = ["{} (rdmav{})".format(p.driver, p.abi) for p in others]
        fail("libibverbs offers {}, others: {}".format(offered[0], ", ".join(seen[:4])))


@check(
    "rdma.ofed",
    "the OFED of the image is the release that the recipe names, by its own word",
    cause="another OFED was installed over it, or packages of the distribution took its place",
    remedy="dpkg -l 'libibverbs*' 'rdma-core*'   # mlnx in the version is OFED's own",
    needs=("rdma.libs",),
)
def test_ofed(image: Situation, host: Any, measure: Measure) -> None:
    """`ofed_info -s`, such as `MLNX_OFED_LINUX-5.4-3.1.0.0:`; of DOCA the version of its package"""
    promised, variant = image.expected.version("rdma"), _variant(image)
    if variant not in ("mlnx-ofed", "doca"):
        skip("not-in-recipe", "the verbs stack is the distribution's")
    if variant == "doca":
        package = str(image.expected.fact("rdma", "package", "doca-ofed-userspace"))
        found = host.package(package).version if host.package(package).is_installed else ""
        measure("{} {}".format(package, found))
        if not found.startswith(promised):
            fail("{} {}, the recipe says {}".format(package, found or "is not there", promised))
        return
    program = first("ofed_info", image.env.get("PATH", ""))
    if not program:
        fail("there is no ofed_info", "the packages of OFED are not in the image", "imagegen build")
    result = run([program, "-s"], env=image.env)
    said = result.out.strip().rstrip(":")
    measure(said)
    if not re.search(r"-{}(\D|$)".format(re.escape(promised)), said):
        fail("{}, the recipe says {}".format(said or result.says(), promised))


@check(
    "rdma.tools",
    "the diagnostic programs that the recipe names are there",
    severity="warn",
    cause="a package of tools is missing",
    remedy="apt-get install ibverbs-utils infiniband-diags perftest iproute2",
)
def test_tools(image: Situation, measure: Measure) -> None:
    """the programs of the recipe on PATH"""
    promised = [str(name) for name in image.expected.fact("rdma", "tools", ["ibv_devinfo"])]
    path = image.env.get("PATH", "") + ":/usr/sbin:/sbin"
    measure(", ".join(promised))
    lost = [name for name in promised if not first(name, path)]
    if lost:
        fail("not there: {}".format(", ".join(lost)))


@check(
    "rdma.no-kmod",
    "only user space is in the image: kernel modules are the host's",
    severity="warn",
    cause="OFED was installed without --user-space-only",
    remedy="./mlnxofedinstall --user-space-only --without-fw-update --force",
)
def test_no_kmod(image: Situation, measure: Measure) -> None:
    """*.ko below /lib/modules and /usr/src; packages of kernel modules in dpkg's database"""
    files = verbs_stack.kernel_modules(image.root, ["/lib/modules", "/usr/src"])
    there = names(under(image.root, "/var/lib/dpkg/info"))
    packages = [name for name in MODULE_PACKAGES if name + ".list" in there]
    measure("none")
    if files or packages:
        fail("; ".join((packages + files)[:4]))


@check(
    "rdma.hw",
    "the host has RDMA devices, and its kernel shows them",
    tier="live",
    cause="the card is there, its driver is not: mlx5_ib is not loaded on the host",
    remedy="modprobe mlx5_ib   # on the host",
)
def test_hw(image: Situation, measure: Measure) -> None:
    """/sys/class/infiniband, else PCI functions of vendor 0x15b3 and class 0x0207"""
    devices = sysfs.rdma_devices(image.root)
    measure(", ".join(devices))
    if devices:
        return
    cards = sysfs.pci_functions(image.root, sysfs.MELLANOX, [sysfs.INFINIBAND_CLASS])
    if cards:
        fail("InfiniBand cards at {}, nothing in /sys/class/infiniband".format(", ".join(cards)))
    skip("no-rdma-hw", "the host has no RDMA device")


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
    measure(", ".join(one.node for one in verbs))
    if lost or not verbs:
        text = "{} devices in /sys, {} of them in /dev/infiniband"
        fail(text.format(len(verbs) or len(sysfs.rdma_devices(image.root)), len(verbs) - len(lost)))
    if not os.path.exists(under(image.root, "/dev/infiniband/rdma_cm")):
        fail("/dev/infiniband/rdma_cm is not there")
    for one in verbs:
        _open(under(image.root, one.node))


def _open(node: str) -> None:
    try:
        os.close(os.open(node, os.O_RDWR))
    except OSError as error:
        fail("cannot open {}: {}".format(node, (error.strerror or "").lower()))


@check(
    "rdma.port",
    "at least one port has a link",
    tier="live",
    cause="no cable, the switch's port is down, or (InfiniBand) no subnet manager runs",
    remedy="ibstat   # on the host; state must be Active, physical state LinkUp",
    needs=("rdma.hw",),
)
def test_port(image: Situation, measure: Measure) -> None:
    """/sys/class/infiniband/*/ports/*/{state,rate,link_layer}: at least one `4: ACTIVE`"""
    ports = sysfs.ports(image.root)
    seen = "; ".join(str(port) for port in ports)
    measure(seen)
    if not any(port.active for port in ports):
        fail(seen or "no port")
    if not all(port.active for port in ports):
        warn("; ".join(str(port) for port in ports if not port.active))
