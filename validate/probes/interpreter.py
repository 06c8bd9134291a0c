"""The image's own Python, asked from outside: `validate` runs in another one.

Each question is a script of its own, run by the target interpreter, that prints one JSON object as
its last line. The scripts run on Python 3.6 and later.
"""

import json
import shutil
from typing import Any, Dict, NamedTuple

from validate.process import run

VERSION = """
import json, sys
print(json.dumps({"version": "%d.%d.%d" % sys.version_info[:3], "prefix": sys.prefix}))
"""

LOCATE = """
import importlib.util, json
def folder(name):
    spec = importlib.util.find_spec(name)
    return list(spec.submodule_search_locations or [""])[0] if spec else ""
print(json.dumps({name: folder(name) for name in ("torch", "horovod")}))
"""

TORCH = """
import json, os, torch
def arrays():
    try:
        import numpy
    except ImportError:
        return {"numpy": "", "numpy_problem": ""}
    try:
        torch.from_numpy(torch.ones(2).numpy())
    except Exception as error:
        return {"numpy": numpy.__version__, "numpy_problem": str(error).strip().splitlines()[-1]}
    return {"numpy": numpy.__version__, "numpy_problem": ""}
try:
    import horovod.torch
except Exception:
    pass
def mapped():
    paths = set()
    with open("/proc/self/maps") as maps:
        for line in maps:
            path = line.split(None, 5)[-1].strip()
            if ".so" in path and path.startswith("/"):
                paths.add(os.path.realpath(path))
    return sorted(paths)
print(json.dumps({
    **arrays(),
    "version": torch.__version__,
    "cuda": torch.version.cuda,
    "cxx11_abi": bool(getattr(torch._C, "_GLIBCXX_USE_CXX11_ABI", True)),
    "gpus": torch.cuda.device_count() if torch.version.cuda else 0,
    "file": torch.__file__,
    "mapped": mapped(),
}))
"""

DISTRO_DISTS = """
import json
HOME = "/usr/lib/python3/dist-packages"
try:
    from importlib.metadata import distributions
    names = [d.metadata["Name"] for d in distributions() if str(d.locate_file("")).startswith(HOME)]
except ImportError:
    import pkg_resources
    names = [d.project_name for d in pkg_resources.working_set if d.location.startswith(HOME)]
print(json.dumps({"names": sorted(set(name.lower() for name in names))}))
"""

HOROVOD_DIST = """
import json
try:
    from importlib.metadata import distributions
    names = [(d.metadata["Name"], d.version) for d in distributions()]
except ImportError:
    import pkg_resources
    names = [(d.project_name, d.version) for d in pkg_resources.working_set]
import horovod
print(json.dumps({
    "dists": sorted({name for name, _ in names if name in ("horovod", "light-horovod")}),
    "version": getattr(horovod, "__version__", ""),
}))
"""

HOROVOD_TORCH = """
import json
import horovod.torch as hvd
from horovod.torch import mpi_lib_v2
print(json.dumps({
    "mpi": bool(hvd.mpi_built()),
    "nccl": bool(hvd.nccl_built()),
    "gloo": bool(hvd.gloo_built()),
    "library": mpi_lib_v2.__file__,
}))
"""

HOROVOD_SIZE = """
import sys
import horovod.torch as hvd
hvd.init()
sys.stdout.write("horovod rank %d of %d\\n" % (hvd.rank(), hvd.size()))
sys.stdout.flush()
"""


IMPORT_SECONDS = 200.0
"""For an import of a framework: minutes, where the disk is cold and the machine is loaded. Below
the ceiling of a check."""


class Answer(NamedTuple):
    """What a script printed, or why it printed nothing usable."""

    facts: Dict[str, Any]
    problem: str
    timed_out: bool = False

    @property
    def ok(self) -> bool:
        return not self.problem


def ask(interpreter: str, script: str, env: Dict[str, str], timeout: float) -> Answer:
    """Run a script in the target interpreter; `timeout` in seconds."""
    result = run([interpreter, "-c", script], timeout, env)
    if not result.ok:
        return Answer({}, result.says(), result.timed_out)
    try:
        facts = json.loads(result.out.strip().splitlines()[-1])
    except (ValueError, IndexError):
        return Answer({}, "`{}` printed no facts: {}".format(interpreter, result.tail(2)))
    return Answer(facts, "")


def find(env: Dict[str, str], stated: str = "") -> str:
    """The interpreter that the recipe states, else the first `python3` on PATH."""
    return stated or shutil.which("python3", path=env.get("PATH", "")) or "python3"
