"""Run the chosen suites with pytest, once, in this process."""

import contextlib
import io
import os
import sys
import tempfile
from typing import Iterator, List, Tuple

import pytest

from validate import catalogue, prefetch
from validate.check import CheckResult
from validate.expected import Expected
from validate.fixtures import Situation
from validate.pytest_plugin import Collector, RunOptions
from validate.testinfra_timeout import limited_commands

EVERYTHING = RunOptions()


def run_suites(
    suites: List[str], expected: Expected, root: str, options: RunOptions = EVERYTHING
) -> Tuple[List[CheckResult], List[str]]:
    """Run the checks of some suites.

    Returns their results, and the suites that could not be loaded.
    """
    peers = tuple(options.peers)
    situation = Situation(expected, dict(os.environ), root, {}, peers, {}, options.gpus)
    collector = Collector(situation, options)
    own = [path for name, path in options.own.items() if name in suites]
    files = catalogue.files_of(suites) + own
    quiet = contextlib.redirect_stdout(io.StringIO())
    with prefetch.started(situation, suites), _own_pytest(), quiet:
        if files:
            code = pytest.main(_arguments(own) + files, plugins=[collector])
            if code == pytest.ExitCode.INTERRUPTED and not collector.unloaded:
                raise KeyboardInterrupt
            if code in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.INTERNAL_ERROR):
                collector.unloaded.append("pytest ended with exit code {}".format(int(code)))
    return collector.results, collector.unloaded


def _arguments(own: List[str]) -> List[str]:
    """Return the arguments for pytest.

    Shipped suites run without any conftest.py. The user's suites may have one, and pytest explains
    their assertions. `--confcutdir` keeps pytest from reading every folder above the suites, up to
    the root.
    """
    arguments = ["-p", "no:terminal", "-p", "no:cacheprovider", "-p", "no:junitxml"]
    arguments += ["--continue-on-collection-errors", *_capture()]
    arguments += ["-p", "testinfra.plugin", "-c", os.devnull, "--import-mode=importlib"]
    folder = os.path.dirname(own[0]) if own else catalogue.SUITES
    arguments += ["--rootdir", folder, "--confcutdir", folder]
    return arguments + (["--assert=rewrite"] if own else ["--noconftest", "--assert=plain"])


def _capture() -> List[str]:
    """Capture what checks print in memory where pytest cannot make files for it."""
    try:
        tempfile.gettempdir()
    except OSError:
        return ["--capture=sys"]
    return []


@contextlib.contextmanager
def _own_pytest() -> Iterator[None]:
    """Shield the run from outside settings while the block lasts.

    The caller's pytest settings and the image's pytest plug-ins have no effect, no byte code is
    written, and testinfra's commands have a time limit.
    """
    kept = dict(os.environ)
    for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS"):
        os.environ.pop(name, None)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    sys.dont_write_bytecode = True
    try:
        with limited_commands():
            yield
    finally:
        os.environ.clear()
        os.environ.update(kept)
