"""Check on a GPU that NCCL uses its net plugin, from NCCL's log."""

import re

from validate.check import check, fail, skip
from validate.fixtures import Measure, Situation
from validate.probes import cuda, nccl
from validate.probes.chosen_plugin import is_wanted, plugin_path
from validate.probes.libraries import environment, libraries
from validate.probes.native import ended, run_script
from validate.remedy import only_look

ONE_RANK = """
import ctypes, sys
lib = ctypes.CDLL(sys.argv[1])
class Id(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]
unique, comm = Id(), ctypes.c_void_p()
code = lib.ncclGetUniqueId(ctypes.byref(unique))
lib.ncclCommInitRank.argtypes = [ctypes.c_void_p, ctypes.c_int, Id, ctypes.c_int]
code = code or lib.ncclCommInitRank(ctypes.byref(comm), 1, unique, 0)
lib.ncclGetErrorString.restype = ctypes.c_char_p
sys.stdout.flush()
print("\\ncode %d %s" % (code, lib.ncclGetErrorString(code).decode()))
sys.stdout.flush()
if not code:
    lib.ncclCommDestroy(comm)
"""
FALLBACKS = ("IB", "Socket")


@check(
    "plugin.used",
    "NCCL chooses the plugin for a communicator on a GPU",
    tier="live",
    cause="NCCL fell back to its own network, which is silent at its usual log level",
    remedy=only_look("NCCL_DEBUG=INFO validate --only nccl,plugin"),
    needs=("plugin.load", "cuda.malloc", "harp.config"),
)
def test_used(image: Situation, measure: Measure) -> None:
    """ncclCommInitRank with one rank in a process of its own, NCCL_DEBUG=INFO: `Using network X`,
    where X is neither IB nor Socket; since 2.27 `Assigned NET plugin X to comm`"""
    if not cuda.gpus(image.root):
        skip("no-gpu-hw", "the host has no NVIDIA GPU")
    path = plugin_path(image)
    library = libraries(image).first(nccl.LIBRARY)
    if not library:
        skip("not-installed", "there is no {}".format(nccl.LIBRARY))
    env = dict(environment(image, library), NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT,NET")
    env.pop("NCCL_DEBUG_FILE", None)
    result = run_script(ONE_RANK, [library], env)
    if not result.ok:
        fail(ended(library, result))
    end = re.search(r"^code (\d+) (.*)$", result.out, re.MULTILINE)
    if not end or end.group(1) != "0":
        fail("NCCL does not start: {}".format(end.group(2) if end else result.tail(1)))
    used = re.findall(r"(?:Using network|Assigned NET plugin) (\S+)", result.out)
    measure("NCCL uses {}".format(used[-1] if used else "a network that it does not name"))
    if used and used[-1] in FALLBACKS and is_wanted(image):
        fail("NCCL uses {}, not {}".format(used[-1], path))
