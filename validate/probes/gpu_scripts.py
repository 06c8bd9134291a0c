"""Hold what NVML and CUDA are asked, as scripts for validate's own Python.

Names, structures and numbers: NVIDIA's NVML API reference (nvml.h) and CUDA driver API (cuda.h).
"""

ASK_NVML = """
import ctypes, json, sys
from ctypes import byref, c_int, c_ubyte, c_uint, c_ulonglong, c_void_p
lib = ctypes.CDLL(sys.argv[1])
class Memory(ctypes.Structure):
    _fields_ = [("total", c_ulonglong), ("free", c_ulonglong), ("used", c_ulonglong)]
class Process(ctypes.Structure):
    _fields_ = [("pid", c_uint), ("memory", c_ulonglong), ("gpu", c_uint), ("compute", c_uint)]
class Fabric(ctypes.Structure):
    _fields_ = [("uuid", c_ubyte * 16), ("status", c_int), ("clique", c_uint), ("state", c_ubyte)]
def processes(device):
    for name in ("nvmlDeviceGetComputeRunningProcesses_v3",
                 "nvmlDeviceGetComputeRunningProcesses_v2"):
        count, found = c_uint(64), (Process * 64)()
        if hasattr(lib, name) and getattr(lib, name)(device, byref(count), found) == 0:
            return [found[n].pid for n in range(count.value)]
    return []
def errors(device, link):
    name = "nvmlDeviceGetNvLinkErrorCounter"
    found = [numbers(name, device, [c_ulonglong], c_uint(link), c_uint(n)) for n in range(4)]
    return [one[0] if one else 0 for one in found]
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
    pcie = ["CurrPcieLinkWidth", "MaxPcieLinkWidth", "CurrPcieLinkGeneration",
            "MaxPcieLinkGeneration", "PerformanceState"]
    pcie = [numbers("nvmlDeviceGet" + name, device, [c_uint]) for name in pcie]
    fabric = Fabric()
    told = hasattr(lib, "nvmlDeviceGetGpuFabricInfo")
    told = told and lib.nvmlDeviceGetGpuFabricInfo(device, byref(fabric)) == 0
    return {
        "index": index, "code": 0, "name": text("nvmlDeviceGetName", device),
        "total": memory.total if known else 0, "used": memory.used if known else 0,
        "compute_mode": numbers("nvmlDeviceGetComputeMode", device, [c_uint]),
        "persistence": numbers("nvmlDeviceGetPersistenceMode", device, [c_uint]),
        "mig": numbers("nvmlDeviceGetMigMode", device, [c_uint, c_uint]),
        "ecc": numbers("nvmlDeviceGetTotalEccErrors", device, [c_ulonglong], c_uint(1), c_uint(0)),
        "remapped": numbers("nvmlDeviceGetRemappedRows", device, [c_uint] * 4),
        "slowdown": numbers("nvmlDeviceGetCurrentClocksThrottleReasons", device, [c_ulonglong]),
        "links": links, "address": address(device), "processes": processes(device),
        "link_errors": [sum(errors(device, link)) for link in range(len(links))],
        "retired": numbers("nvmlDeviceGetRetiredPagesPendingStatus", device, [c_uint]),
        "pcie": [one[0] if one else None for one in pcie],
        "fabric": [fabric.state, fabric.status, fabric.clique] if told else [],
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
