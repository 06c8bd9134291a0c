"""Check what the launch allows the container: low limits cause crashes that do not name them."""

import os

from validate.check import check, fail, warn
from validate.fixtures import Measure, Situation
from validate.probes import cuda, kubernetes, limits
from validate.probes.files import under
from validate.probes.sysfs import rdma_devices
from validate.remedy import at_launch

MIB = 1 << 20
SHM_LEAST, SHM_GOOD = 256 * MIB, 8192 * MIB
FILES_GOOD = 65536
PROCESSES_GOOD = 4096


@check(
    "lim.memlock",
    "RDMA may pin as much memory as it needs",
    tier="live",
    cause="the container was started with the engine's default limit",
    remedy=at_launch(
        "docker run --ulimit memlock=-1 IMAGE   # a pod: "
        "securityContext.capabilities.add [IPC_LOCK]"
    ),
)
def test_memlock(image: Situation, measure: Measure) -> None:
    """RLIMIT_MEMLOCK, IPC_LOCK in CapEff, devices in /sys/class/infiniband; the launcher of an
    MPIJob needs none"""
    limit = limits.soft_limit("memlock")
    lock = "IPC_LOCK" in limits.capabilities(image.root)
    text = limits.bytes_in_words(limit) + (", and IPC_LOCK" if lock else "")
    measure(text)
    if limit == limits.UNLIMITED or lock:
        return
    if not image.expected.has("rdma"):
        return
    text = "{} may be pinned, RDMA pins its buffers: unlimited is good".format(text)
    here = rdma_devices(image.root) and not kubernetes.launches_only(image.env)
    (fail if here else warn)(text)


@check(
    "lim.shm",
    "/dev/shm holds what NCCL, MPI and the data loader put there",
    tier="live",
    cause="the container was started with the engine's default (64 MiB), or a small --shm-size",
    remedy=at_launch(
        "docker run --shm-size=32g IMAGE   # a pod: emptyDir {medium: Memory} at /dev/shm"
    ),
)
def test_shm(image: Situation, measure: Measure) -> None:
    """statvfs(/dev/shm): its size, used or not"""
    size = limits.shm_bytes(image.root)
    measure(limits.bytes_in_words(size))
    matters = image.expected.device == "gpu" or image.expected.has("rdma")
    if image.expected.inferred:  # a GPU build of a framework computes on CPUs too
        matters = bool(cuda.gpus(image.root) or rdma_devices(image.root))
    if not size:
        (fail if matters else warn)("there is no /dev/shm", "the container has --ipc none")
    if size < SHM_LEAST and matters:
        fail(
            "/dev/shm has {}, at least {} are needed".format(
                limits.bytes_in_words(size), limits.bytes_in_words(SHM_LEAST)
            )
        )
    if size < SHM_GOOD:
        has, good = limits.bytes_in_words(size), limits.bytes_in_words(SHM_GOOD)
        warn("/dev/shm has {}, {} are good".format(has, good))


@check(
    "lim.nofile",
    "ranks may open as many files and sockets as a wide job needs",
    severity="warn",
    tier="live",
    cause="the engine's default; NCCL opens tens of thousands in a job of a hundred ranks",
    remedy=at_launch(
        "docker run --ulimit nofile=1048576 IMAGE   # a pod: LimitNOFILE of containerd"
    ),
)
def test_nofile(measure: Measure) -> None:
    """RLIMIT_NOFILE, at least 65536"""
    limit = limits.soft_limit("nofile")
    measure("unlimited" if limit == limits.UNLIMITED else str(limit))
    if limit != limits.UNLIMITED and limit < FILES_GOOD:
        fail("{} open files, {} are good".format(limit, FILES_GOOD))


@check(
    "lim.stack",
    (
        "the stack limit is a number: NCCL before 2.28 makes 2 MiB stacks of an "
        "unlimited one, and crashes"
    ),
    severity="warn",
    tier="live",
    cause="the container was started with --ulimit stack=-1",
    remedy=at_launch("docker run --ulimit stack=67108864 IMAGE"),
)
def test_stack(measure: Measure) -> None:
    """RLIMIT_STACK is a number"""
    limit = limits.soft_limit("stack")
    measure(limits.bytes_in_words(limit))
    if limit == limits.UNLIMITED:
        fail("the stack limit is `unlimited`")


@check(
    "lim.nproc",
    "ranks may start as many processes and threads as they need",
    severity="warn",
    tier="live",
    cause="the container was started with --pids-limit, or the pod has a limit of processes",
    remedy=at_launch(
        "docker run --pids-limit -1 --ulimit nproc=-1 IMAGE   # a pod: podPidsLimit of kubelet"
    ),
)
def test_nproc(image: Situation, measure: Measure) -> None:
    """RLIMIT_NPROC, and pids.max of the control group; at least 4096"""
    pids = limits.control_group(image.root).get("pids", "")
    here = [limits.soft_limit("nproc")] + ([int(pids)] if pids.isdigit() else [])
    numbers = [number for number in here if number != limits.UNLIMITED]
    measure(str(min(numbers)) if numbers else "unlimited")
    if numbers and min(numbers) < PROCESSES_GOOD:
        fail("{} processes and threads, {} are good".format(min(numbers), PROCESSES_GOOD))


@check(
    "lim.sysfs",
    "/sys shows the machine: NCCL reads its topology there, HARP its configuration",
    tier="live",
    cause="/sys is not mounted in the container",
    remedy=at_launch(
        "docker run -v /sys:/sys IMAGE   # a pod: a hostPath volume of /sys, mounted at /sys"
    ),
)
def test_sysfs(image: Situation, measure: Measure) -> None:
    """/sys/class/net and /sys/bus/pci/devices can be listed"""
    places = ("/sys/class/net", "/sys/bus/pci/devices")
    lost = [place for place in places if not os.path.isdir(under(image.root, place))]
    measure(", ".join(places))
    if lost:
        (fail if image.expected.has("harp") else warn)("{} not there".format(", ".join(lost)))


@check("lim.cgroup", "what the container may use of the host", severity="info", tier="live")
def test_cgroup(image: Situation, measure: Measure) -> None:
    """cpu.max, memory.max, cpuset.cpus.effective and pids.max, or their v1 names"""
    found = limits.control_group(image.root)
    measure(
        ", ".join("{} {}".format(name, value) for name, value in sorted(found.items()))
        or "no limit"
    )


@check(
    "lim.caps",
    "which capabilities the container has, of those that training uses",
    severity="info",
    tier="live",
)
def test_caps(image: Situation, measure: Measure) -> None:
    """CapEff and Seccomp of /proc/self/status"""
    found = ", ".join(limits.capabilities(image.root)) or "none of note"
    measure("{}; seccomp {}".format(found, limits.seccomp(image.root)))
