"""Import PyTorch and Horovod once, in one process of the image's Python.

The script prints the facts of PyTorch before it imports Horovod: if Horovod ends the process,
PyTorch has answered.
"""

from typing import Any, Dict, NamedTuple

from validate.fixtures import Situation, SlowProbe
from validate.probes.imports import printed_facts, read_answers
from validate.probes.interpreter import IMPORT_SECONDS, Answer, find_python
from validate.probes.torch_scripts import in_turn
from validate.process import Result, RunningCommand

KEY = "training"
"""The key of the answers in Situation."""

SCRIPT = """
import json, os, torch
def arrays():
    try:
        import numpy
    except ImportError:
        return {"numpy": "", "numpy_problem": ""}
    try:
        torch.from_numpy(torch.ones(2).numpy())
    except Exception as error:
        why = str(error).strip().splitlines()[-1]
        return {"numpy": numpy.__version__, "numpy_problem": why, "numpy_file": numpy.__file__}
    return {"numpy": numpy.__version__, "numpy_problem": ""}
def backends():
    try:
        from torch import distributed
    except ImportError:
        return []
    if not distributed.is_available():
        return []
    kinds = ("gloo", "nccl", "mpi", "ucc")
    # Releases before 1.12 do not say whether they have gloo; ddp.init tries it.
    unsaid = {"gloo": lambda: True}
    asked = ((k, getattr(distributed, "is_%s_available" % k, unsaid.get(k, bool))) for k in kinds)
    return [kind for kind, there in asked if there()]
def mapped():
    paths = set()
    with open("/proc/self/maps") as maps:
        for line in maps:
            path = line.split(None, 5)[-1].strip()
            if ".so" in path and path.startswith("/"):
                paths.add(os.path.realpath(path))
    return sorted(paths)
print("\\n" + json.dumps({"torch": {
    **arrays(),
    "version": torch.__version__,
    "cuda": torch.version.cuda,
    "cxx11_abi": bool(getattr(torch._C, "_GLIBCXX_USE_CXX11_ABI", True)),
    "gpus": torch.cuda.device_count() if torch.version.cuda else 0,
    "file": torch.__file__,
    "backends": backends(),
    "mapped": mapped(),
}}), flush=True)
import horovod.torch as hvd
from horovod.torch import mpi_lib_v2
print("\\n" + json.dumps({"mapped": mapped(), "horovod": {
    "mpi": bool(hvd.mpi_built()),
    "nccl": bool(hvd.nccl_built()),
    "gloo": bool(hvd.gloo_built()),
    "library": mpi_lib_v2.__file__,
}}), flush=True)
"""


class Imported(NamedTuple):
    """Hold the answers of both.

    `mapped` of PyTorch lists the libraries in the process, also those of Horovod if it loaded.
    `more` has the answers of a preflight, which asks all of PyTorch in this process.
    """

    torch: Answer
    horovod: Answer
    more: Dict[str, Any] = {}


def begin_import(image: Situation) -> RunningCommand:
    """Start the import in the image's Python."""
    python = find_python(image.env, image.expected)
    argv = [python, "-c", SCRIPT]
    if image.preflight:
        argv = in_turn(python, SCRIPT, image.expected.device == "gpu")
    return RunningCommand(argv, IMPORT_SECONDS, image.env)


def torch_and_horovod(image: Situation) -> Imported:
    """Return both answers; the import runs once in a run."""
    found: Imported = image.once(KEY, lambda: parse_answers(begin_import(image).result()))
    return found


def parse_answers(result: Result) -> Imported:
    """Read the answers from what the script printed."""
    torch, horovod = read_answers(result, "torch")
    if not torch.ok:
        return Imported(torch, horovod)
    facts = printed_facts(result.out)
    torch.facts.update(mapped=facts.get("mapped", torch.facts["mapped"]))
    return Imported(torch, horovod, facts)


SLOW_PROBE = SlowProbe(KEY, begin_import, parse_answers)
