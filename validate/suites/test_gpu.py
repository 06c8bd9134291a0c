"""Check that the container has all GPUs of the host, and that NVML and CUDA can use them."""

import os
import re
from typing import List, NoReturn

from validate.check import check, fail, skip, warn
from validate.fixtures import Measure, Situation
from validate.probes import cuda, gpu, gpu_health, kubernetes
from validate.probes.files import names, read, under
from validate.probes.gpu_scripts import ASK_DRIVER
from validate.probes.libraries import environment, libraries
from validate.probes.programs import find_program
from validate.process import run
from validate.remedy import Remedy, at_launch, in_shell, on_host

SMI_SECONDS = 30.0
PASS_ALL = at_launch(
    "docker run --gpus all IMAGE   # a pod: resources.limits nvidia.com/gpu; without the container "
    "toolkit: --device=/dev/nvidiactl --device=/dev/nvidia-uvm --device=/dev/nvidia0"
)
INSTALL_DRIVER = on_host("install the NVIDIA driver; then start anew with --gpus all", "nvidia-smi")
CAPABILITIES = at_launch(
    "docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility IMAGE"
)
NEEDED = ("compute", "utility")
NOT_READY = 802
"""CUDA_ERROR_SYSTEM_NOT_READY: the fabric of a machine with NVSwitch is not set up."""


def _cards(image: Situation) -> List[str]:
    """Return the GPUs of the host; skip the check if it has none and the container has none."""
    found = cuda.gpus(image.root)
    if not found and not cuda.nodes(image.root):
        skip("no-gpu-hw", "the host has no NVIDIA GPU")
    if kubernetes.launches_only(image.env) and not cuda.nodes(image.root):
        skip("not-applicable", "the launcher of an MPIJob has no GPU of its own")
    return found


def _asked(image: Situation) -> str:
    visible = image.env.get("NVIDIA_VISIBLE_DEVICES")
    return "NVIDIA_VISIBLE_DEVICES " + (
        "is not set" if visible is None else "is `{}`".format(visible)
    )


def _not_passed(image: Situation, text: str) -> NoReturn:
    cause = "the container was started without its GPUs: " + _asked(image)
    fail(text, cause, PASS_ALL)


@check(
    "gpu.nodes",
    "every GPU on the host's bus has its device node in the container",
    tier="live",
    cause="the container was started without its GPUs, or with some of them",
    remedy=PASS_ALL,
)
def test_nodes(image: Situation, measure: Measure) -> None:
    """/sys/bus/pci/devices/*/{vendor,class} (0x10de, 0x0300/0x0302) against /dev/nvidiactl,
    /dev/nvidia[0-9]+, /dev/nvidia-uvm; /proc/driver/nvidia/version"""
    cards, nodes = _cards(image), cuda.nodes(image.root)
    minors = [node for node in nodes if re.search(r"\d$", node)]
    driver = cuda.driver_on_host(image.root)
    measure("{} GPUs, {} nodes, driver {}".format(len(cards), len(minors), driver or "unknown"))
    if not nodes and not driver:
        text = "{} GPUs on the host's PCI bus, no driver in its kernel, nothing in /dev"
        fail(text.format(len(cards)), "the host has no NVIDIA driver loaded", INSTALL_DRIVER)
    if not nodes:
        text = "{} GPUs and driver {} on the host, none of them in /dev"
        _not_passed(image, text.format(len(cards), driver))
    if "/dev/nvidiactl" not in nodes:
        text, cause = (
            "{} without /dev/nvidiactl",
            "the devices were passed by hand, not all of them",
        )
        fail(text.format(", ".join(nodes)), cause, PASS_ALL)
    if not minors:
        _not_passed(image, "/dev/nvidiactl alone: no GPU was passed")
    if len(minors) < len(cards):
        warn("{} of the host's {} GPUs were passed".format(len(minors), len(cards)))


@check(
    "gpu.env",
    "the container toolkit is asked for GPUs, with what CUDA and NVML need",
    severity="warn",
    tier="live",
    cause="the launch or the image sets NVIDIA_VISIBLE_DEVICES or NVIDIA_DRIVER_CAPABILITIES so",
    remedy=PASS_ALL,
)
def test_env(image: Situation, measure: Measure) -> None:
    """$NVIDIA_VISIBLE_DEVICES (empty, void, none: no device, unless CDI or --device brought some)
    and $NVIDIA_DRIVER_CAPABILITIES (compute and utility, or all)"""
    _cards(image)
    visible = image.env.get("NVIDIA_VISIBLE_DEVICES")
    able = image.env.get("NVIDIA_DRIVER_CAPABILITIES", "")
    measure("{}, capabilities {}".format(_asked(image), able or "by default"))
    passed = any(re.search(r"\d$", node) for node in cuda.nodes(image.root))
    if visible in ("none", "void", "") and not passed:
        text = "NVIDIA_VISIBLE_DEVICES={}".format(visible)
        fail(text, remedy=at_launch("docker run --gpus all -e NVIDIA_VISIBLE_DEVICES=all IMAGE"))
    lost = [name for name in NEEDED if able and name not in able.split(",")]
    if lost and able != "all":
        text = "NVIDIA_DRIVER_CAPABILITIES={} is without {}".format(able, ", ".join(lost))
        fail(text, remedy=CAPABILITIES)


def _nvml(image: Situation) -> gpu.GpuAnswer:
    """Return NVML's answers, asked once in a run."""
    path = libraries(image).loader.first(gpu.NVML)
    if not path:
        text = "{} is not in the container".format(gpu.NVML)
        cause = "the driver's libraries were not mounted: " + _asked(image)
        fail(text, cause, CAPABILITIES)
    return gpu.ask_nvml(image, path)


@check(
    "gpu.nvml",
    "NVML starts and counts at least one GPU: the driver in the kernel answers",
    tier="live",
    cause="the driver of the host and the libraries in the container do not fit",
    remedy=on_host("reboot, or install the driver again, where nvidia-smi fails", "nvidia-smi"),
    needs=("gpu.nodes",),
)
def test_nvml(image: Situation, measure: Measure) -> None:
    """libnvidia-ml.so.1 in a process of its own: nvmlInit_v2, nvmlDeviceGetCount_v2,
    nvmlSystemGetDriverVersion, nvmlDeviceGetHandleByIndex_v2, nvmlDeviceGetName"""
    answer = _nvml(image)
    if answer.problem:
        fail(answer.problem)
    if answer.code:
        fail(
            "NVML returned {}".format(answer.code), *gpu.NVML_CODES.get(answer.code, ("", Remedy()))
        )
    seen = sorted({str(one.get("name", "?")) for one in answer.devices})
    text = "{} x {}, driver {}".format(len(answer.devices), ", ".join(seen), answer.facts["driver"])
    measure(text)
    lost = [one for one in answer.devices if one["code"]]
    if lost:
        code = int(lost[0]["code"])
        text = "GPU {} answers {}".format(lost[0]["index"], code)
        known = gpu.NVML_CODES.get(
            code, ("the GPU fell off the bus or its node is missing", PASS_ALL)
        )
        fail(text, *known)
    if not answer.devices:
        _not_passed(image, "NVML counts no GPU")


def _driver(image: Situation) -> gpu.GpuAnswer:
    path = libraries(image).loader.first(gpu.DRIVER)
    if not path:
        cause = "the driver's libraries were not mounted: " + _asked(image)
        fail("{} is not in the container".format(gpu.DRIVER), cause, PASS_ALL)
    found: gpu.GpuAnswer = image.once(
        "driver", lambda: gpu.ask_library(ASK_DRIVER, path, environment(image, path))
    )
    return found


@check(
    "gpu.fabricmgr",
    "on a machine with NVSwitch the fabric is set up",
    tier="live",
    cause="the fabric manager does not run, or is of another release than the driver",
    remedy=on_host("systemctl restart nvidia-fabricmanager   # of the driver's release"),
    needs=("gpu.nodes",),
)
def test_fabricmgr(image: Situation, measure: Measure) -> None:
    """NVSwitch functions on the bus (0x10de, class 0x0680); cuInit returns 802 until the fabric is
    there"""
    switches = cuda.switches(image.root)
    if not switches:
        skip("not-applicable", "there is no NVSwitch")
    code = _driver(image).code
    measure("{} NVSwitches, cuInit {}".format(len(switches), code))
    if code == NOT_READY:
        fail("{} NVSwitches, cuInit 802: system not ready".format(len(switches)))


@check(
    "gpu.count",
    "NVML and CUDA agree on how many GPUs there are, and they are as many as `--require` says",
    tier="live",
    cause="CUDA_VISIBLE_DEVICES hides some, some are cut into MIG instances, or a node is missing",
    remedy=in_shell("unset CUDA_VISIBLE_DEVICES", look="nvidia-smi -L"),
    needs=("gpu.nvml",),
)
def test_count(image: Situation, measure: Measure) -> None:
    """nvmlDeviceGetCount_v2 against cuDeviceGetCount and the number of `--require gpu=N`;
    nvmlDeviceGetPciInfo_v3 against the host's bus; nvmlDeviceGetMigMode; $CUDA_VISIBLE_DEVICES"""
    devices, driver = _nvml(image).devices, _driver(image)
    mig, hidden = gpu.mig_devices(devices), image.env.get("CUDA_VISIBLE_DEVICES")
    text = "NVML {}, CUDA {}".format(len(devices), driver.facts.get("count", 0))
    measure(text + (", MIG on GPU {}".format(", ".join(map(str, mig))) if mig else ""))
    if driver.code == NOT_READY and cuda.switches(image.root):
        skip("blocked-by", "gpu.fabricmgr")
    if driver.problem or driver.code:
        text = driver.problem or "cuInit returned {}".format(driver.code)
        fail(text, *cuda.INIT_CODES.get(driver.code, ("the driver refuses", INSTALL_DRIVER)))
    if image.gpus and len(devices) != image.gpus:
        fail(*gpu.not_as_many(image.gpus, devices, cuda.gpus(image.root)))
    if mig:
        remedy = on_host("nvidia-smi -i {} -mig 0   # when nobody uses it".format(mig[0]))
        warn(text + ", MIG is on: CUDA takes one instance", "a GPU is cut into instances", remedy)
    if len(devices) != driver.facts["count"]:
        more = ", CUDA_VISIBLE_DEVICES={}".format(hidden) if hidden is not None else ""
        (warn if hidden and not image.gpus else fail)(text + more)


@check(
    "gpu.p2p",
    "every pair of GPUs can copy directly",
    severity="warn",
    tier="live",
    cause="ACS or the IOMMU is on, or the GPUs hang at different root complexes: NCCL goes through "
    "host memory",
    remedy=on_host("disable ACS on the PCIe bridges", look="nvidia-smi topo -p2p r"),
    needs=("gpu.count",),
)
def test_p2p(image: Situation, measure: Measure) -> None:
    """cuDeviceCanAccessPeer for every ordered pair"""
    facts = _driver(image).facts
    if facts["count"] < 2:
        skip("not-applicable", "there is one GPU")
    pairs = facts["count"] * (facts["count"] - 1)
    measure("{} pairs".format(pairs))
    if facts["apart"]:
        seen = ["{} to {}".format(*pair) for pair in facts["apart"][:4]]
        fail("{} of {} pairs cannot: {}".format(len(facts["apart"]), pairs, ", ".join(seen)))


@check(
    "gpu.health",
    "programs may use every GPU",
    severity="warn",
    tier="live",
    cause="an administrator has set the compute mode so",
    remedy=on_host("nvidia-smi -c 0"),
    needs=("gpu.nvml",),
)
def test_health(image: Situation, measure: Measure) -> None:
    """nvmlDeviceGetComputeMode and GetPersistenceMode of each GPU"""
    devices = _nvml(image).devices
    ill = [(one["index"], found) for one in devices for found in gpu_health.modes(one)]
    lazy = [str(one["index"]) for one in devices if one.get("persistence") == [0]]
    note = ", persistence mode is off" if lazy else ""
    measure("{} GPUs without a finding{}".format(len(devices), note))
    if ill:
        text = "; ".join("GPU {}: {}".format(index, one.seen) for index, one in ill)
        fail(text, ill[0][1].cause, ill[0][1].remedy)


@check(
    "gpu.topo",
    "how GPUs, NICs and processors hang together",
    severity="info",
    tier="live",
    needs=("gpu.nvml",),
)
def test_topo(image: Situation, measure: Measure) -> None:
    """`nvidia-smi topo -m`, else the numa_node of every GPU in /sys/bus/pci/devices"""
    program = find_program("nvidia-smi", image.env.get("PATH", "")) if image.root == "/" else ""
    if program:
        result = run([program, "topo", "-m"], SMI_SECONDS, image.env)
        measure(result.out.strip() if result.ok else result.says())
        return
    top = "/sys/bus/pci/devices"
    places = [(one, read(under(image.root, os.path.join(top, one, "numa_node")))) for one in
              cuda.gpus(image.root) if one in names(under(image.root, top))]  # fmt: skip
    measure(", ".join("{} node {}".format(one, node or "?") for one, node in places))
