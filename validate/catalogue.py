"""List the suites in the order they run, the checks in them, and what is left out.

A suite is the file `suites/test_NAME.py` and, where one file would be too long, more files
`suites/test_NAME_*.py` beside it.
"""

import difflib
import importlib
import os
from typing import List, NamedTuple, Tuple

from validate.benchmark import checks as benchmark
from validate.check import Check
from validate.components import COMPONENTS
from validate.expected import Expected
from validate.network.checks import NETWORK, NETWORK_CHECKS

SUITES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "suites")
BENCHMARK = benchmark.SUITE
ON_REQUEST = (BENCHMARK, NETWORK)
"""Suites that are no pytest files, and run where an option of their own asks for them."""

PLUGIN = "plugin"
"""The suite about the net plugins of NCCL: whoever brings NCCL, or a framework that has one."""

OWN_SUITES = {"os": 20, "gpu": 50, PLUGIN: 175, "limits": 180, "k8s": 190, "peers": 200}
"""Suites that are of no component, with their places in a run."""

ALWAYS = ("os", "limits", "k8s")
"""Suites that apply to every image."""

IN_EVERY_FILE = ("os", "limits")
"""Suites that the expectation file of every image lists."""

ORDER = {**OWN_SUITES, **{name: one.order for name, one in COMPONENTS.items() if one.order}}
"""Suite -> its place in a run. The suites that others depend on run first. Among the rest, those
that need not wait run first: PyTorch is imported in the meantime. A suite without a place runs
after these, by name.
"""

ALIASES = {
    "lim": "limits",
    "kubernetes": "k8s",
    "bench": BENCHMARK,
    "net": NETWORK,
    **{short: name for name, one in COMPONENTS.items() for short in one.short_names},
}
"""Short name -> suite: what the ids of its checks begin with."""

LEFT_OUT = {
    "os.time": "a container has no clock of its own, and without a network there is none to "
    "compare with",
    "bench.threshold": "what is fast enough depends on the machine: the numbers are in the report, "
    "and whoever keeps the history of a machine compares them",
    "nccl-tests": "nccl-tests.programs looks at the programs; `validate --bandwidth` makes the "
    "sweep of all_reduce_perf with the NCCL, gloo or MPI of any image",
}
"""Checks that were considered and left out, each with the reason."""


class Entry(NamedTuple):
    """Hold a check and the name of its suite."""

    suite: str
    check: Check


def suite_of(stem: str) -> str:
    """Return the suite of a file: `test_rdma` and `test_rdma_ports` belong to `rdma`."""
    return stem.replace("test_", "", 1).partition("_")[0]


def files() -> List[str]:
    """List the files of all shipped suites, in the order they run."""
    found = [f for f in os.listdir(SUITES) if f.startswith("test_") and f.endswith(".py")]
    return sorted(found, key=lambda file: (_rank(suite_of(file[:-3])), file[:-3]))


def _rank(suite: str) -> Tuple[int, str]:
    return (ORDER.get(suite, 1 + max(ORDER.values())), suite)


def suite_names() -> List[str]:
    """List the names of all suites, in the order they run."""
    return list(dict.fromkeys(suite_of(file[:-3]) for file in files()))


def files_of(suites: List[str]) -> List[str]:
    """List the paths of the files of some suites, in the order they run."""
    return [os.path.join(SUITES, file) for file in files() if suite_of(file[:-3]) in suites]


def all_checks() -> List[Entry]:
    """List all checks, in the order they run."""
    found = []
    for file in files():
        module = importlib.import_module("validate.suites." + file[:-3])
        members = [getattr(module, name) for name in dir(module) if name.startswith("test_")]
        members = [one for one in members if hasattr(one, "check")]
        members.sort(key=lambda member: member.__code__.co_firstlineno)
        found += [Entry(suite_of(file[:-3]), member.check) for member in members]
    found += [Entry(BENCHMARK, one) for one in benchmark.CHECKS]
    return found + [Entry(NETWORK, one) for one in NETWORK_CHECKS]


def not_applicable(suite: str, expected: Expected) -> str:
    """Say why a suite does not apply to an image; empty if it does."""
    if suite in ALWAYS:
        return ""
    components = [suite] + sorted(n for n, one in COMPONENTS.items() if suite in one.more_suites)
    if any(expected.has(name) for name in components):
        return ""
    if suite == PLUGIN and any(expected.fact(name, "cuda") for name in expected.components):
        return ""  # a framework built for CUDA brings an NCCL of its own
    if suite == "gpu":
        return "" if expected.device == "gpu" else "the image is for {}".format(expected.device)
    omitted = [expected.omission(name) for name in components if expected.omission(name)]
    return "".join(omitted[:1]) or "`{}` is no component of this image".format(suite)


def problem_with_suites(expected: Expected) -> str:
    """Say what is wrong with the suites that an expectation file lists; empty if nothing is.

    A suite that is unknown, or left out, would take its checks along without a word. A file that
    names no cell was written by hand, and lists the suites that it wants.
    """
    known = suite_names()
    for name in expected.suites:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            meant = "; did you mean `{}`?".format(near[0]) if near else ""
            text = "`suites` names `{}`, and this validate has no such suite{}"
            return text.format(name, meant)
    wanted = [name for name in known if expected.has(name) or name in IN_EVERY_FILE]
    left_out = [name for name in wanted if name not in expected.suites]
    if left_out and expected.data.get("cell"):
        return "`suites` leaves out `{}`, which applies to this image".format(left_out[0])
    return ""


def chosen_by_default(expected: Expected, pod: bool, peers: bool) -> List[str]:
    """Choose the suites of a run that names none: those that fit the image and the situation."""
    suites = list(expected.suites)
    suites += [name for name in ("gpu", PLUGIN) if not not_applicable(name, expected)]
    more = [COMPONENTS[name].more_suites for name in expected.components if name in COMPONENTS]
    suites += [one for suites_of_one in more for one in suites_of_one if one not in OWN_SUITES]
    suites += ["k8s"] if pod else []
    suites += ["peers"] if peers else []
    return [name for name in suite_names() if name in suites]
