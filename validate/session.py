"""One pytest run over the chosen suites, in this process, and what `--require` makes of it."""

import contextlib
import io
import os
import sys
from typing import Iterator, List, Tuple

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
    collector = Collector(Situation(expected, dict(os.environ), root, {}), static)
    files = [os.path.join(SUITES, "test_{}.py".format(name)) for name in suites]
    arguments = ["-p", "no:terminal", "-p", "no:cacheprovider", "-p", "no:junitxml"]
    arguments += ["-p", "testinfra.plugin", "--assert=plain"]
    arguments += ["--rootdir", SUITES, "--noconftest", "-c", os.devnull, "--import-mode=importlib"]
    with _own_pytest(), contextlib.redirect_stdout(io.StringIO()):
        if files:
            code = pytest.main(arguments + files, plugins=[collector])
            if code == pytest.ExitCode.INTERRUPTED and not collector.broken:
                raise KeyboardInterrupt
            if code == pytest.ExitCode.USAGE_ERROR:
                collector.broken.append("pytest refuses its arguments: " + " ".join(arguments))
    return collector.found, collector.broken


@contextlib.contextmanager
def _own_pytest() -> Iterator[None]:
    """Neither the caller's pytest settings nor plug-ins of the image reach our run; no byte
    code is left."""
    kept = dict(os.environ)
    for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS"):
        os.environ.pop(name, None)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    sys.dont_write_bytecode = True
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(kept)


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
