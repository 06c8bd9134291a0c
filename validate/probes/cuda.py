"""Find the CUDA toolkit, the driver library and the GPUs of the host, from files.

Drivers: NVIDIA's release notes of each toolkit, section "CUDA Driver", and its documentation on
minor version compatibility and forward compatibility.
"""

import json
import os
import re
from typing import Dict, List, Tuple

from validate.expected import same_version
from validate.probes import sysfs
from validate.probes.files import names, read, under
from validate.remedy import RELAUNCH, Remedy, at_launch, in_shell, on_host

INSUFFICIENT_DRIVER = 35
"""cudaErrorInsufficientDriver: before CUDA 12 cudaRuntimeGetVersion returns it without a driver."""

GPU_CLASSES = ["0x0300", "0x0302"]
HOME = "/usr/local/cuda"

NATIVE_DRIVER = {
    "9.0": "384.81",
    "9.2": "396.26",
    "10.0": "410.48",
    "10.1": "418.39",
    "10.2": "440.33",
    "11.0": "450.36.06",
    "11.1": "455.23",
    "11.2": "460.27.03",
    "11.3": "465.19.01",
    "11.4": "470.42.01",
    "11.5": "495.29.05",
    "11.6": "510.39.01",
    "11.7": "515.43.04",
    "11.8": "520.61.05",
    "12.0": "525.60.13",
    "12.1": "530.30.02",
    "12.2": "535.54.03",
    "12.3": "545.23.06",
    "12.4": "550.54.14",
    "12.5": "555.42.02",
    "12.6": "560.28.03",
    "12.8": "570.26",
    "12.9": "575.51.03",
    "13.0": "580.65.06",
    "13.1": "590.44.01",
    "13.2": "595.45.04",
}
"""Toolkit -> the driver that came with it, on Linux."""

FLOOR_DRIVER = {"11": "450.80.02", "12": "525.60.13", "13": "580"}
"""Major release -> the oldest driver that minor version compatibility allows."""


PASS_GPUS = at_launch("docker run --gpus all IMAGE   # a pod: resources.limits nvidia.com/gpu")


def without_folders(word: str) -> Remedy:
    """Return the line that takes folders with a word in their names off the loader's path."""
    return in_shell(
        "sed -i 's|^[^#]*/{}/* *$|# &|' /etc/ld.so.conf.d/*.conf; ldconfig".format(word),
        look="ldconfig -p | grep libcuda.so; echo $LD_LIBRARY_PATH",
    )


INIT_CODES = {
    34: (
        "the loader finds the stub of libcuda that serves for linking, not the driver's",
        without_folders("stubs"),
    ),
    100: ("the driver sees no GPU: none was passed, or CUDA_VISIBLE_DEVICES hides it", PASS_GPUS),
    802: (
        "the NVSwitch fabric is not set up: the fabric manager does not run",
        on_host("systemctl start nvidia-fabricmanager"),
    ),
    803: (
        "libcuda and the kernel's driver are of different releases, often by a cuda-compat package",
        without_folders("compat"),
    ),
    804: (
        "forward compatibility (cuda-compat) serves data centre GPUs only, this is another",
        without_folders("compat"),
    ),
    999: (
        "the container lost its devices, often by `systemctl daemon-reload` on the host",
        on_host("docker restart CONTAINER").leads_to(RELAUNCH),
    ),
}
"""Code that cuInit returns (cuda.h, CUresult) -> cause, remedy."""

BAD_ENV = (
    "NSIGHT_CUDA_DEBUGGER",
    "CUDA_INJECTION32_PATH",
    "CUDA_INJECTION64_PATH",
    "CUDA_AUTO_BOOST",
    "CUDA_ENABLE_COREDUMP_ON_EXCEPTION",
    "CUDA_COREDUMP_FILE",
    "CUDA_DEVICE_WAITS_ON_EXCEPTION",
    "CUDA_PROFILE",
    "COMPUTE_PROFILE",
    "OPENCL_PROFILE",
)
"""Variables that slow CUDA down or change it: DCGM, nvvs/src/Software.cpp."""


def gpus(root: str) -> List[str]:
    """List the PCI addresses of the host's NVIDIA GPUs, passed to the container or not."""
    return sysfs.pci_functions(root, sysfs.NVIDIA, GPU_CLASSES)


def nodes(root: str) -> List[str]:
    """List the device nodes of GPUs in the container."""
    found = [name for name in names(under(root, "/dev")) if re.match(r"nvidia(ctl|\d+)$", name)]
    return ["/dev/" + name for name in found]


def release(number: int) -> str:
    """Convert the number that the run time and the driver report to a release: 12040 is 12.4."""
    return "{}.{}".format(number // 1000, number % 1000 // 10)


def major_minor(version: str) -> str:
    """Return the release of a version: `12.4.131` is 12.4."""
    return ".".join(version.split(".")[:2])


def cudart(version: str) -> str:
    """Return the run time library of a release: since 11 all minor releases share one name."""
    major, _, minor = major_minor(version).partition(".")
    tail = major if int(major) > 11 else "11.0" if major == "11" else "{}.{}".format(major, minor)
    return "libcudart.so." + tail


def numbers(version: str) -> Tuple[int, ...]:
    """Convert a version to a tuple that can be compared: `470.57.02` is (470, 57, 2)."""
    return tuple(int(part) for part in re.findall(r"\d+", version))


def written(root: str) -> Dict[str, str]:
    """Return the versions that the files of the toolkit name, by file.

    version.json has it since 11.1, version.txt before that, and the header in devel images.
    """
    found = _version_json(read(under(root, HOME + "/version.json")))
    text = re.search(r"CUDA Version ([\d.]+)", read(under(root, HOME + "/version.txt")))
    if text:
        found["version.txt"] = text.group(1)
    for header in (HOME + "/include/cuda.h", "/usr/include/cuda.h"):
        macro = re.search(r"^#define CUDA_VERSION (\d+)", read(under(root, header)), re.MULTILINE)
        if macro:
            found[header] = release(int(macro.group(1)))
    return found


def compiler(root: str, path: str) -> str:
    """Find nvcc in the toolkit's folder, or on PATH as Debian packs it; empty if there is none."""
    folders = [HOME + "/bin", *filter(None, path.split(":"))]
    places = [under(root, os.path.join(folder, "nvcc")) for folder in folders]
    return next((place for place in places if os.access(place, os.X_OK)), "")


def kind(version: str) -> str:
    """Say what the third part of a version counts: `patch`, `build` or `date`; empty without one.

    12.4.1 counts patches, 12.4.131 builds of nvcc, 11.3.20210326 days.
    """
    third = numbers(version)[2:3]
    if not third:
        return ""
    return "patch" if third[0] < 10 else "build" if third[0] < 1000 else "date"


def differs(promised: str, found: Dict[str, str]) -> str:
    """Say which files of a toolkit disagree with the recipe; empty if none does.

    All versions must be of the promised release. Of those whose third part counts the same thing as
    the promised one, at least one must be equal to it.
    """
    others = [name for name, one in found.items() if not same_version(major_minor(promised), one)]
    if others:
        return ", ".join("{} says {}".format(name, found[name] or "nothing") for name in others)
    alike = {name: one for name, one in found.items() if kind(promised) == kind(one)}
    if (
        not kind(promised)
        or not alike
        or any(same_version(promised, one) for one in alike.values())
    ):
        return ""
    return ", ".join("{} says {}".format(*pair) for pair in alike.items())


def _version_json(text: str) -> Dict[str, str]:
    try:
        parts = json.loads(text or "{}")
    except ValueError:
        return {}
    wanted = {"cuda": "version.json", "cuda_nvcc": "version.json (nvcc)"}
    rows = {wanted[name]: row for name, row in parts.items() if name in wanted}
    return {name: str(row.get("version", "")) for name, row in rows.items()}


def parse_nvcc(text: str) -> str:
    """Read the build of nvcc from `nvcc --version`, such as 11.3.109."""
    found = re.search(r"release [\d.]+, V([\d.]+)", text)
    return found.group(1) if found else ""


def driver_on_host(root: str) -> str:
    """Return the version of the kernel's driver; empty if /proc does not show one."""
    text = read(under(root, "/proc/driver/nvidia/version"))
    found = re.search(r"(?:Kernel Module|Open Kernel Module for \S+) +(\d[\d.]+)", text)
    return found.group(1) if found else ""


def switches(root: str) -> List[str]:
    """List the PCI addresses of the host's NVSwitches: NVIDIA bridges that are no GPU."""
    return sysfs.pci_functions(root, sysfs.NVIDIA, ["0x0680"])
