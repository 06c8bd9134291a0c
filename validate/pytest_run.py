"""One pytest run over the chosen suites, in this process, and what `--require` makes of it."""

import contextlib
import io
import os
import sys
from typing import Dict, Iterator, List, NamedTuple, Tuple

import pytest

from validate import catalogue, prefetch
from validate.expected import Expected
from validate.found import Found
from validate.pytest_plugin import Collector, Situation, Wanted
from validate.testinfra_timeout import testinfra_commands

HARDWARE = {"gpu": ("no-gpu-hw", "gpu-not-passed"), "rdma": ("no-rdma-hw", "rdma-not-passed")}
"""Skip codes that say that a required device is not there."""


class Asked(NamedTuple):
    """What the command line asks for beside the suites. `own` is suite -> file of the user's;
    `profile` is empty where that of the image holds; `gpus` is 0 for any number."""

    static: bool = False
    loopback: bool = False
    profile: str = ""
    peers: List[str] = []
    own: Dict[str, str] = {}
    gpus: int = 0


EVERYTHING = Asked()


def run_suites(
    suites: List[str], expected: Expected, root: str, asked: Asked = EVERYTHING
) -> Tuple[List[Found], List[str]]:
    """Run the checks of some suites; what they found, and suites that could not be loaded."""
    situation = Situation(expected, dict(os.environ), root, {}, tuple(asked.peers), {}, asked.gpus)
    wanted = Wanted(asked.static, asked.loopback, asked.profile, frozenset(asked.own.values()))
    collector = Collector(situation, wanted)
    own = [path for name, path in asked.own.items() if name in suites]
    files = catalogue.files_of(suites) + own
    quiet = contextlib.redirect_stdout(io.StringIO())
    with prefetch.begun(situation, suites), _own_pytest(), quiet:
        if files:
            code = pytest.main(_arguments(own) + files, plugins=[collector])
            if code == pytest.ExitCode.INTERRUPTED and not collector.broken:
                raise KeyboardInterrupt
            if code in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.INTERNAL_ERROR):
                collector.broken.append("pytest ended with exit code {}".format(int(code)))
    return collector.found, collector.broken


def _arguments(own: List[str]) -> List[str]:
    """Ours run without any conftest.py; a user's may have one, and assertions that explain.

    The cut keeps pytest from reading every folder above the suites, up to the root.
    """
    arguments = ["-p", "no:terminal", "-p", "no:cacheprovider", "-p", "no:junitxml"]
    arguments += ["--continue-on-collection-errors"]
    arguments += ["-p", "testinfra.plugin", "-c", os.devnull, "--import-mode=importlib"]
    folder = os.path.dirname(own[0]) if own else catalogue.SUITES
    arguments += ["--rootdir", folder, "--confcutdir", folder]
    return arguments + (["--assert=rewrite"] if own else ["--noconftest", "--assert=plain"])


@contextlib.contextmanager
def _own_pytest() -> Iterator[None]:
    """Neither the caller's pytest settings nor plug-ins of the image reach our run; no byte
    code is left; testinfra's commands have a limit."""
    kept = dict(os.environ)
    for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS"):
        os.environ.pop(name, None)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    sys.dont_write_bytecode = True
    try:
        with testinfra_commands():
            yield
    finally:
        os.environ.clear()
        os.environ.update(kept)


def required_but_skipped(required: List[str], found: List[Found]) -> List[str]:
    """The required things that did not run: suites without a result, devices that are not there."""
    missing = []
    for name in required:
        suite = catalogue.ALIASES.get(name, name)
        mine = [one for one in found if one.suite == suite]
        ran = [one for one in mine if one.outcome not in ("skipped",)]
        absent = [one for one in mine if one.reason in HARDWARE.get(name, ())]
        if not ran or absent:
            missing.append(name)
    return missing
