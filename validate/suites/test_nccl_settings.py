"""Check rarely used settings of NCCL: memory on the host, a forced network, a tuner."""

import os

from validate.check import check, fail, skip, warn
from validate.fixtures import Measure, Situation
from validate.probes import cuda, nccl
from validate.probes.files import under
from validate.probes.libraries import libraries, nccl_copies
from validate.probes.limits import capabilities
from validate.remedy import in_shell

CUMEM_HOST = ((2, 24), (2, 26, 5))
"""NCCL allocates host memory by NUMA node without asking whether it may: from the first of these
releases until before the second.
"""
CUMEM_DRIVER = (560,)
"""The first driver of CUDA 12.6."""
BUILT_IN = ("ib", "socket")


@check(
    "nccl.shm-numa",
    "NCCL may place shared memory on a NUMA node, where its release insists on it",
    severity="warn",
    tier="live",
    cause="NCCL 2.24 to 2.26.4 use cuMem for host memory, which takes the system call mbind",
    remedy=in_shell(
        "export NCCL_CUMEM_HOST_ENABLE=0   # at launch instead: docker run --cap-add SYS_NICE IMAGE"
    ),
)
def test_shm_numa(image: Situation, measure: Measure) -> None:
    """the release of every NCCL copy, the driver in /proc/driver/nvidia/version, SYS_NICE in CapEff
    of /proc/self/status, $NCCL_CUMEM_HOST_ENABLE"""
    first, fixed = CUMEM_HOST
    copies = [c.version for c in nccl_copies(image) if c.version]
    touchy = [v for v in copies if first <= cuda.numbers(v) < fixed]
    if not touchy:
        skip("not-applicable", "no NCCL from 2.24 to 2.26.4")
    driver = cuda.driver_on_host(image.root)
    if not driver:
        skip("no-gpu-hw", "there is no driver")
    off = nccl.settings(image.root, image.env).get("NCCL_CUMEM_HOST_ENABLE", ("", ""))[0] == "0"
    may = "SYS_NICE" in capabilities(image.root)
    measure("NCCL {}, driver {}, {}".format(touchy[0], driver, "SYS_NICE" if may else "off"))
    if cuda.numbers(driver) >= CUMEM_DRIVER and not off and not may:
        fail("NCCL {} with driver {}, without SYS_NICE".format(touchy[0], driver))


@check(
    "nccl.netname",
    "a network that NCCL is forced to use is one that it can have",
    severity="warn",
    cause="NCCL_NET names a network; where it is not there, NCCL stops: network not found",
)
def test_netname(image: Situation, measure: Measure) -> None:
    """$NCCL_NET and nccl.conf, against IB, Socket and the plugin of the recipe; without NCCL_NET an
    image with HARP may fall back to sockets silently"""
    asked, place = nccl.settings(image.root, image.env).get("NCCL_NET", ("", ""))
    unforced = in_shell(nccl.removal("NCCL_NET", place))
    measure("NCCL_NET={}".format(asked) if asked else "not forced")
    if not asked and not image.expected.has("harp"):
        return
    if not asked:
        measure("not forced: `export NCCL_NET=…` makes a fallback to sockets an error")
        return
    plugins = libraries(image).loader.starting_with("libnccl-net")
    if asked.lower() not in BUILT_IN and not image.expected.has("harp") and not plugins:
        fail("NCCL_NET={}, and no net plugin is there".format(asked), remedy=unforced)
    if asked.lower() == "socket" and (image.expected.has("harp") or image.expected.has("rdma")):
        warn("NCCL_NET={} keeps NCCL off RDMA".format(asked), "", unforced)


@check(
    "plugin.tuner",
    "which tuner NCCL would load",
    severity="info",
)
def test_tuner(image: Situation, measure: Measure) -> None:
    """$NCCL_TUNER_PLUGIN, else libnccl-tuner.so, as the loader finds it"""
    asked = nccl.settings(image.root, image.env).get("NCCL_TUNER_PLUGIN", ("", ""))[0]
    names = [asked, "libnccl-tuner-{}.so".format(asked)] if asked else ["libnccl-tuner.so"]
    loader = libraries(image).loader
    if "/" in asked:  # a path: dlopen searches no folder
        found = [path for path in (under(image.root, asked),) if os.path.isfile(path)]
    else:
        found = [path for path in map(loader.first, names) if path]
    measure(found[0] if found else "none" + (": {} is not found".format(asked) if asked else ""))
