"""One pytest run over the chosen suites, in this process, and what `--require` makes of it."""

import contextlib
import io
import os
from typing import List, Tuple

import pytest

from validate.cli import ALIASES, SUITES
from validate.expected import Expected
from validate.plugin import PASSED, WARNED, Collector, Found, Situation

HARDWARE = {"gpu": ("no-gpu-hw", "gpu-not-passed"), "rdma": ("no-rdma-hw", "rdma-not-passed")}
"""Skip codes that say that a required device is not there."""


def run_suites(
    suites: List[str], expected: Expected, root: str, static: bool
) -> Tuple[List[Found], List[str]]:
    """Run the checks of some suites; what they found, and suites that could not be loaded."""
    memory = {}  # type: Dict[str, Any]
    collector = Collector(Situation(expected, dict(os.environ), root, memory), static)
    files = [os.path.join(SUITES, "test_{}.py".format(name)) for name in suites]
    arguments = ["-p", "no:terminal", "-p", "no:cacheprovider", "-p", "no:junitxml"]
    arguments += ["--rootdir", SUITES, "--noconftest", "-c", os.devnull, "--import-mode=importlib"]
    with contextlib.redirect_stdout(io.StringIO()):
        if files:
            pytest.main(arguments + files, plugins=[collector])
    return collector.found, collector.broken


def required_but_skipped(required: List[str], found: List[Found]) -> List[str]:
    """The required things that did not run: suites without a result, devices that are not there."""
    missing = []
    for name in required:
        suite = ALIASES.get(name, name)
        mine = [one for one in found if one.suite == suite]
        ran = [one for one in mine if one.outcome not in ("skipped",)]
        absent = [one for one in mine if one.reason in HARDWARE.get(name, ())]
        if not ran or absent:
            missing.append(name)
    return missing


def healthy(found: List[Found]) -> bool:
    """Whether nothing failed."""
    return all(one.outcome in (PASSED, WARNED, "skipped") for one in found)
