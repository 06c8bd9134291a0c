"""Ask the image's own Python from outside: `validate` runs in another Python.

Each question is a script that the target interpreter runs, and that prints one JSON object as its
last line. The scripts run on Python 3.6 and later.
"""

import json
import shutil
import sys
from typing import Any, Dict, NamedTuple

from validate.expected import Expected
from validate.process import Result, run

VERSION = """
import json, sys
print(json.dumps({"version": "%d.%d.%d" % sys.version_info[:3], "prefix": sys.prefix}))
"""
OWN_VERSION = "{}.{}.{}".format(*sys.version_info[:3])
"""The release of the Python that the checks run on."""

LOCATE = """
import importlib.util, json, os, sys
def folder(name):
    spec = importlib.util.find_spec(name)
    return list(spec.submodule_search_locations or [""])[0] if spec else ""
print(json.dumps({
    "folders": [path for path in map(folder, ("torch", "horovod", "tensorflow", "mxnet")) if path],
    "sites": [path for path in sys.path if path and os.path.isdir(path)],
    "version": "%d.%d.%d" % sys.version_info[:3], "prefix": sys.prefix,
}))
"""

DISTRO_DISTS = """
import json
HOME = "/usr/lib/python3/dist-packages"
try:
    from importlib.metadata import distributions
    names = [d.metadata["Name"] for d in distributions() if str(d.locate_file("")).startswith(HOME)]
    names = [name for name in names if name]
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

IMPORT_SECONDS = 200.0
"""Time limit for the import of a framework, which takes minutes on a loaded machine with a slow
disk. It is less than the time limit of a check.
"""


class Answer(NamedTuple):
    """Hold what a script printed, or why it printed nothing usable."""

    facts: Dict[str, Any]
    problem: str
    timed_out: bool = False
    killed: bool = False
    said: str = ""
    """All that it printed as errors, such as a traceback."""

    @property
    def ok(self) -> bool:
        """Return whether there is an answer."""
        return not self.problem


def ask(
    interpreter: str, script: str, env: Dict[str, str], timeout: float, apart: bool = False
) -> Answer:
    """Run a script in the target interpreter; `timeout` is in seconds.

    With `apart` neither PYTHON* variables nor the folder of the user's packages count.
    """
    return answered(run([interpreter, *(["-I"] if apart else []), "-c", script], timeout, env))


def answered(result: Result) -> Answer:
    """Return what a script printed in the target interpreter."""
    if not result.ok:
        return Answer({}, result.says(), result.timed_out, bool(result.killed_by), result.err)
    try:
        facts = json.loads(result.out.strip().splitlines()[-1])
    except (ValueError, IndexError):
        return Answer({}, "`{}` printed no facts: {}".format(result.argv[0], result.tail(2)))
    return Answer(facts, "")


def find_python(env: Dict[str, str], expected: Expected) -> str:
    """Return the interpreter that the recipe names, else the first `python3` on PATH."""
    stated = str(expected.fact("python", "interpreter", ""))
    return stated or shutil.which("python3", path=env.get("PATH", "")) or "python3"
