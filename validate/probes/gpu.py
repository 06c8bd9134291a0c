"""Ask NVML and the CUDA driver about the GPUs of a container.

Names, structures and numbers: NVIDIA's NVML API reference (nvml.h) and CUDA driver API (cuda.h).
Each library is asked in a process of its own: a driver that hangs ends with that process.
"""

from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from validate.fixtures import Situation
from validate.probes.gpu_health import number_at
from validate.probes.gpu_scripts import ASK_NVML
from validate.probes.libraries import environment, libraries
from validate.probes.native import ended, facts_of, run_script
from validate.remedy import RELAUNCH, Remedy, at_launch, on_host

NVML, DRIVER = "libnvidia-ml.so.1", "libcuda.so.1"
DRIVER_LIBRARIES = (NVML, DRIVER)
"""Libraries that the host's driver brings when a container starts; no image has them."""

NVML_CODES = {
    9: (
        "the kernel has no NVIDIA driver, or this container does not reach it",
        at_launch("docker run --gpus all IMAGE", look="nvidia-smi"),
    ),
    12: (
        "NVML does not find a library that it needs: only a part of the driver was mounted",
        at_launch("docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility IMAGE"),
    ),
    18: (
        "the driver was updated on the host under the running container, or while it runs",
        on_host("docker restart CONTAINER   # reboot where the host's own nvidia-smi fails too"),
    ),
    999: (
        "the container lost its devices, often by `systemctl daemon-reload` on the host",
        on_host("docker restart CONTAINER").leads_to(RELAUNCH),
    ),
}
"""Code that nvmlInit and nvmlDeviceGetCount return -> cause, remedy."""


class GpuAnswer(NamedTuple):
    """Hold the answer of a library, or the problem if there is none."""

    problem: str
    facts: Dict[str, Any]

    @property
    def code(self) -> int:
        """Return the return code of the library; -1 if there is none."""
        return int(self.facts.get("code", -1))

    @property
    def devices(self) -> List[Dict[str, Any]]:
        """Return the facts of each device."""
        return list(self.facts.get("devices", []))


def ask_library(script: str, library: str, env: Dict[str, str]) -> GpuAnswer:
    """Run one of the scripts on a library of the machine."""
    result = run_script(script, [library], env)
    if not result.ok:
        return GpuAnswer(ended(library, result), {})
    return GpuAnswer("", facts_of(result)) if facts_of(result) else GpuAnswer(result.says(), {})


def ask_nvml(image: Situation, path: str = "") -> GpuAnswer:
    """Return what NVML says of all GPUs, asked once in a run.

    In a preflight that is before PyTorch takes a GPU: its process would count as another one's.
    """
    path = path or libraries(image).loader.first(NVML)
    found: GpuAnswer = image.once(
        NVML, lambda: ask_library(ASK_NVML, path, environment(image, path))
    )
    return found


def not_as_many(
    wanted: int, devices: Sequence[Dict[str, Any]], bus: Sequence[str]
) -> Tuple[str, str, Remedy]:
    """Say what is measured, cause and remedy if NVML does not count the required number of GPUs.

    `bus` lists the PCI addresses of the host's GPUs.
    """
    text = "{} GPUs are required, NVML counts {}".format(wanted, len(devices))
    if len(devices) > wanted:
        remedy = at_launch("docker run --gpus {} IMAGE".format(wanted))
        return text, "the container was given more than the job is for", remedy
    seen = [one.get("address") for one in devices]
    lost = [address for address in bus if address not in seen] if all(seen) else []
    if lost:
        text += "; on the host's bus, but not here: {}".format(", ".join(lost))
        cause = "they were not passed to the container, or the driver has lost them"
        return text, cause, at_launch("docker run --gpus all IMAGE", look="nvidia-smi -L")
    text += ", the host's bus has {}: {}".format(len(bus), ", ".join(bus))
    cause = "the machine is of another kind, or a GPU fell off the bus"
    look = "lspci -d 10de:; dmesg | grep -i xid"
    return text, cause, on_host("reboot; replace the GPU if it does not come back", look=look)


def mig_devices(devices: Sequence[Dict[str, Any]]) -> List[int]:
    """List the indices of the GPUs that are split into MIG instances."""
    return [int(one["index"]) for one in devices if number_at(one.get("mig"))]
