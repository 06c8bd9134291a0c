"""Check the health of GPUs and of what brings them here: faults that no image can cause."""

from typing import Any, Callable, Dict, List

from validate.check import check, fail, skip, warn
from validate.fixtures import Measure, Situation
from validate.probes import container_toolkit, cuda, gpu, gpu_health, gpu_log, kubernetes
from validate.probes.known_bad import HOST, host_rows, in_range
from validate.remedy import at_launch, on_host, only_look

IMEX = at_launch(
    "docker run -e NVIDIA_IMEX_CHANNELS=0 IMAGE   # a pod: a resourceClaim of the ComputeDomain"
)
NEW_SPECIFICATION = "nvidia-ctk cdi generate --output={}"


def _devices(image: Situation) -> List[Dict[str, Any]]:
    """Return what NVML says of each GPU that answers."""
    return [one for one in gpu.ask_nvml(image).devices if not one["code"]]


def _none_of(
    image: Situation, measure: Measure, look: Callable[[Dict[str, Any]], List[gpu_health.Ailment]]
) -> None:
    """Fail with what is found on any GPU; the first cause and remedy are those of the report."""
    devices = _devices(image)
    found = [(one["index"], finding) for one in devices for finding in look(one)]
    measure("{} GPUs without a finding".format(len(devices)))
    if found:
        text = "; ".join("GPU {}: {}".format(index, one.seen) for index, one in found)
        fail(text, found[0][1].cause, found[0][1].remedy)


@check(
    "gpu.xid",
    "the kernel logged no error of a GPU's hardware within the last day",
    tier="live",
    cause="the hardware of the GPU, its slot or its links failed",
    remedy=on_host("reboot; replace the GPU if it comes back", look="dmesg | grep -i xid"),
    needs=("gpu.nodes",),
)
def test_xid(image: Situation, measure: Measure) -> None:
    """`NVRM: Xid` in /dev/kmsg, else syslog(2), with codes of the hardware: 48, 61, 62, 64, 74, 79,
    92, 95, 119, 120, 140, 143, 145, 149; /proc/uptime"""
    log = gpu_log.kernel_log(image.root)
    if log is None:
        skip("needs-root", "the kernel's log cannot be read here")
    found = gpu_log.xids(image.root, log)
    bad = [one for one in found if one.of_the_machine]
    measure("{} XID errors, none of the hardware within a day".format(len(found)))
    if bad:
        last = list({one.address: one for one in bad}.values())
        fail("; ".join(map(str, last)))


@check(
    "gpu.ecc",
    "the memory of no GPU is damaged",
    tier="live",
    cause="the memory has errors, or a repair that waits for a reset",
    remedy=on_host("nvidia-smi -r   # when nobody uses the GPUs"),
    needs=("gpu.nvml",),
)
def test_ecc(image: Situation, measure: Measure) -> None:
    """nvmlDeviceGetTotalEccErrors (uncorrected, volatile), GetRemappedRows (pending, failed),
    GetRetiredPagesPendingStatus of each GPU"""
    _none_of(image, measure, gpu_health.damaged_memory)


@check(
    "gpu.nvlink",
    "the NVLinks of every GPU are up, and its fabric knows it",
    tier="live",
    cause="a link or a switch is down, or the fabric manager has not set it up",
    remedy=on_host("reset the GPUs, or reboot", look="nvidia-smi nvlink -s"),
    needs=("gpu.nvml",),
)
def test_nvlink(image: Situation, measure: Measure) -> None:
    """nvmlDeviceGetNvLinkState and GetNvLinkErrorCounter of every link, GetGpuFabricInfo; NVSwitch
    functions on the bus"""
    devices, switched = _devices(image), bool(cuda.switches(image.root))
    if not any(sum(one.get("links") or []) for one in devices) and not switched:
        skip("not-applicable", "no GPU has an NVLink that is up")
    _none_of(image, measure, lambda one: gpu_health.links(one, devices, switched))
    up = ["{}".format(sum(one.get("links") or [])) for one in devices]
    errors = {one["index"]: gpu_health.link_errors(one) for one in devices}
    measure("NVLinks up {}".format(", ".join(up)))
    bad = ["GPU {} {}".format(*pair) for pair in errors.items() if pair[1]]
    if bad:
        text = "errors of NVLinks since the driver loaded: {}"
        look = only_look("nvidia-smi nvlink -e")
        warn(text.format(", ".join(bad)), "a link drops or repeats data", look)


@check(
    "gpu.pcie",
    "the link of every GPU to the host has its full width and generation",
    severity="warn",
    tier="live",
    cause="the link came up narrower or slower than GPU and slot allow",
    remedy=on_host("seat the GPU anew, or replace its riser", look="nvidia-smi -q"),
    needs=("gpu.nvml",),
)
def test_pcie(image: Situation, measure: Measure) -> None:
    """nvmlDeviceGetCurrPcieLinkWidth and GetCurrPcieLinkGeneration against GetMaxPcieLinkWidth and
    GetMaxPcieLinkGeneration of GPU and slot; the generation only in performance state P0"""
    _none_of(image, measure, gpu_health.pcie)


@check(
    "gpu.clocks",
    "no GPU is slowed down by heat or by its power supply",
    severity="warn",
    tier="live",
    cause="it is too hot, or its power supply limits it",
    remedy=on_host("look after fans and power supplies", look="nvidia-smi -q -d PERFORMANCE"),
    needs=("gpu.nvml",),
)
def test_clocks(image: Situation, measure: Measure) -> None:
    """nvmlDeviceGetCurrentClocksThrottleReasons of each GPU: hardware slowdown, thermal slowdown,
    power brake"""
    _none_of(image, measure, gpu_health.clocks)


@check(
    "gpu.busy",
    "no GPU is in another process's hands",
    tier="live",
    cause="another job has it, or one that ended left a process behind",
    remedy=on_host("end the processes that use the GPU", look="nvidia-smi"),
    needs=("gpu.nvml",),
)
def test_busy(image: Situation, measure: Measure) -> None:
    """nvmlDeviceGetComputeRunningProcesses_v3 and GetMemoryInfo of each GPU, before anything of
    ours has one"""
    _none_of(image, measure, gpu_health.busy)


@check(
    "gpu.imex",
    "GPUs whose NVLink leads to other machines have an IMEX channel",
    tier="live",
    cause="the container was started without a channel: memory of other machines cannot be mapped",
    remedy=IMEX,
    needs=("gpu.nvml",),
)
def test_imex(image: Situation, measure: Measure) -> None:
    """the name of the GPU (GB200, GB300), nvidia-caps-imex-channels in /proc/devices,
    /dev/nvidia-caps-imex-channels/channel*"""
    seen = sorted({str(one.get("name", "")) for one in _devices(image)})
    if not any(container_toolkit.MULTI_NODE.search(name) for name in seen):
        skip("not-applicable", "the NVLink of {} stays in the machine".format(", ".join(seen)))
    there = container_toolkit.channels(image.root)
    measure("{} channels".format(len(there)))
    if there:
        return
    if not container_toolkit.has_imex(image.root):
        remedy = on_host("systemctl start nvidia-imex   # of the driver's release")
        fail("the driver serves no IMEX channel", "nvidia-imex does not run on the host", remedy)
    fail("no channel in {}".format(container_toolkit.CHANNELS))


@check(
    "gpu.toolkit",
    "what puts GPUs into containers fits the driver of the host",
    severity="warn",
    tier="live",
    cause="the driver was updated, and the CDI specification was not written anew",
)
def test_toolkit(image: Situation, measure: Measure) -> None:
    """mode in /etc/nvidia-container-runtime/config.toml, else NVIDIA_VISIBLE_DEVICES=void; the
    toolkit's package against known_bad.json; libcuda.so.N in /etc/cdi and /var/run/cdi against
    /proc/driver/nvidia/version"""
    driver = cuda.driver_on_host(image.root)
    if kubernetes.launches_only(image.env):
        skip("not-applicable", "the launcher of an MPIJob has no GPU of its own")
    if not driver:
        skip("no-gpu-hw", "there is no NVIDIA driver")
    mode = container_toolkit.mode(image.root, image.env.get("NVIDIA_VISIBLE_DEVICES", ""))
    release, written = (
        container_toolkit.version(image.root),
        container_toolkit.specifications(image.root),
    )
    words = ["mode {}".format(mode or "unknown from here"), release and "toolkit " + release]
    measure(", ".join([*filter(None, words), *(one.path for one in written)]))
    for row in host_rows():
        wanted = row["packages"][HOST].get(container_toolkit.TOOLKIT, "")
        if release and wanted and in_range(release, wanted):
            fail("toolkit {}: {}".format(release, row["symptom"]), "known: " + row["source"],
                 on_host(row["workaround"]))  # fmt: skip
    for one in written:
        if one.drivers and driver not in one.drivers:
            text = "{} is for driver {}, the kernel has {}"
            fail(text.format(one.path, ", ".join(one.drivers), driver),
                 remedy=on_host(NEW_SPECIFICATION.format(one.path)))  # fmt: skip
