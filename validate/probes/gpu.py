"""Ask NVML and the CUDA driver about the GPUs of a container.

Names, structures and numbers: NVIDIA's NVML API reference (nvml.h) and CUDA driver API (cuda.h).
Each library is asked in a process of its own: a driver that hangs ends with that process.
"""

from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from validate.fixtures import Situation
from validate.probes.libraries import environment, libraries
from validate.probes.native import ended, facts_of, run_script
from validate.remedy import DRAIN, RELAUNCH, Remedy, at_launch, on_host, only_look

NVML, DRIVER = "libnvidia-ml.so.1", "libcuda.so.1"
DRIVER_LIBRARIES = (NVML, DRIVER)
"""Libraries that the host's driver brings when a container starts; no image has them."""

ASK_NVML = """
import ctypes, json, sys
from ctypes import byref, c_char, c_int, c_uint, c_ulonglong, c_void_p
lib = ctypes.CDLL(sys.argv[1])
class Memory(ctypes.Structure):
    _fields_ = [("total", c_ulonglong), ("free", c_ulonglong), ("used", c_ulonglong)]
def address(device):
    for name in ("nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2"):
        found = (c_uint * 32)()
        if hasattr(lib, name) and getattr(lib, name)(device, byref(found)) == 0:
            return "%04x:%02x:%02x.0" % tuple(found[4:7])
    return ""
def text(function, *before):
    buffer = ctypes.create_string_buffer(96)
    code = getattr(lib, function)(*(before + (buffer, c_uint(96))))
    return buffer.value.decode("ascii", "replace") if code == 0 else ""
def numbers(function, device, kinds, *before):
    if not hasattr(lib, function):
        return None
    values = [kind() for kind in kinds]
    arguments = before + tuple(byref(value) for value in values)
    code = getattr(lib, function)(device, *arguments)
    return [value.value for value in values] if code == 0 else None
def one(index):
    device = c_void_p()
    code = lib.nvmlDeviceGetHandleByIndex_v2(c_uint(index), byref(device))
    if code:
        return {"index": index, "code": code}
    memory = Memory()
    known = lib.nvmlDeviceGetMemoryInfo(device, byref(memory)) == 0
    links = [numbers("nvmlDeviceGetNvLinkState", device, [c_uint], c_uint(n)) for n in range(18)]
    links = [link[0] for link in links if link]
    return {
        "index": index, "code": 0, "name": text("nvmlDeviceGetName", device),
        "total": memory.total if known else 0, "used": memory.used if known else 0,
        "compute_mode": numbers("nvmlDeviceGetComputeMode", device, [c_uint]),
        "persistence": numbers("nvmlDeviceGetPersistenceMode", device, [c_uint]),
        "mig": numbers("nvmlDeviceGetMigMode", device, [c_uint, c_uint]),
        "ecc": numbers("nvmlDeviceGetTotalEccErrors", device, [c_ulonglong], c_uint(1), c_uint(0)),
        "remapped": numbers("nvmlDeviceGetRemappedRows", device, [c_uint] * 4),
        "slowdown": numbers("nvmlDeviceGetCurrentClocksThrottleReasons", device, [c_ulonglong]),
        "links": links, "address": address(device),
    }
code = lib.nvmlInit_v2()
found = {"code": code, "driver": "", "devices": []}
if code == 0:
    count = c_uint(0)
    found["code"] = lib.nvmlDeviceGetCount_v2(byref(count))
    found["driver"] = text("nvmlSystemGetDriverVersion")
    found["devices"] = [one(index) for index in range(count.value)]
print("\\n" + json.dumps(found))
"""

ASK_DRIVER = """
import ctypes, json, sys
lib = ctypes.CDLL(sys.argv[1])
number = lambda: ctypes.c_int(0)
found = {"code": lib.cuInit(ctypes.c_uint(0)), "count": 0}
found.update({"capabilities": [], "apart": [], "dma_buf": 0})
if found["code"] == 0:
    count = number()
    found["code"] = lib.cuDeviceGetCount(ctypes.byref(count))
    found["count"] = count.value
    for device in range(count.value):
        major, minor = number(), number()
        lib.cuDeviceGetAttribute(ctypes.byref(major), 75, device)
        lib.cuDeviceGetAttribute(ctypes.byref(minor), 76, device)
        found["capabilities"].append([major.value, minor.value])
        dma = number()
        lib.cuDeviceGetAttribute(ctypes.byref(dma), 124, device)
        found["dma_buf"] = dma.value
        for peer in range(count.value):
            may = number()
            code = lib.cuDeviceCanAccessPeer(ctypes.byref(may), device, peer)
            if peer != device and (code or not may.value):
                found["apart"].append([device, peer])
print("\\n" + json.dumps(found))
"""

ASK_MEMORY = """
import ctypes, json, sys
lib = ctypes.CDLL(sys.argv[1])
count = ctypes.c_int(0)
first = lib.cudaGetDeviceCount(ctypes.byref(count))
codes = []
for device in range(count.value if first == 0 else 0):
    pointer = ctypes.c_void_p()
    code = lib.cudaSetDevice(device) or lib.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(1024))
    codes.append(code or lib.cudaFree(pointer))
print("\\n" + json.dumps({"code": first, "codes": codes}))
"""

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

SLOWDOWNS = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x20: "software thermal",
    0x40: "thermal",
    0x80: "power brake",
}
"""nvmlClocksThrottleReason bits that mean less than full speed under load."""

PROHIBITED = 2
FULL_ABOVE = 0.1
"""Share of a GPU's memory that may be in use before anything was started."""


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


def number_at(values: Any, index: int = 0) -> int:
    """Return one number of an answer; 0 if the device does not know it."""
    return int(values[index]) if values else 0


def ailments(device: Dict[str, Any]) -> List[str]:
    """Say in words what makes a GPU less fit to train than a good one; empty if nothing does."""
    found = []
    if number_at(device.get("ecc")):
        found.append("{} uncorrected ECC errors".format(number_at(device["ecc"])))
    rows = device.get("remapped") or [0, 0, 0, 0]
    found += ["a row remapping is pending"] if rows[2] else []
    found += ["a row remapping failed"] if rows[3] else []
    slow = number_at(device.get("slowdown"))
    found += ["slowed down: " + name for bit, name in sorted(SLOWDOWNS.items()) if slow & bit]
    if number_at(device.get("compute_mode")) == PROHIBITED:
        found.append("compute mode is prohibited")
    total, used = int(device.get("total", 0)), int(device.get("used", 0))
    if total and used > FULL_ABOVE * total:
        found.append("{} of {} MiB are in use".format(used >> 20, total >> 20))
    return found


CURES = {
    "uncorrected ECC": on_host("nvidia-smi -i {} -r   # unused; replace it if they come back"),
    "row remapping is pending": on_host("nvidia-smi -i {} -r   # when nobody uses it"),
    "row remapping failed": on_host("replace GPU {}", look="nvidia-smi -i {} -q -d ROW_REMAPPER"),
    "compute mode": on_host("nvidia-smi -i {} -c 0"),
    "are in use": on_host(
        "end the processes that use GPU {}",
        look="nvidia-smi -i {} --query-compute-apps=pid,name,used_memory --format=csv",
    ),
    "slowed down": only_look("nvidia-smi -i {} -q -d PERFORMANCE,POWER,TEMPERATURE").leads_to(
        DRAIN
    ),
}
"""Words of an ailment -> what is to be done against it, with the index of the GPU."""


def cure(index: int, ailment: str) -> Remedy:
    """Return the remedy for an ailment of a GPU."""
    found = next(one for words, one in CURES.items() if words in ailment)
    return Remedy(found.format(index), found.kind, found.look.format(index), found.action)


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
