"""Run the chosen suites with pytest, once, in this process."""

import contextlib
import io
import os
import sys
import tempfile
from typing import Any, Iterator, List, Tuple

from validate import catalogue, prefetch
from validate.check import CheckResult
from validate.expected import Expected
from validate.fixtures import Situation
from validate.run_options import RunOptions

EVERYTHING = RunOptions()

NOT_NEEDED = (
    *("cacheprovider", "debugging", "doctest", "faulthandler", "junitxml", "legacypath"),
    *("logging", "nose", "pastebin", "setuponly", "setupplan", "stepwise", "terminal"),
    *("threadexception", "unittest", "unraisableexception", "warnings"),
)
"""Plug-ins of pytest that shipped suites do not use; without them it starts in half the time."""
NEVER = ("cacheprovider", "junitxml", "terminal")
"""Those that would write or print, also beside a user's suites."""


def run_suites(
    suites: List[str], expected: Expected, root: str, options: RunOptions = EVERYTHING
) -> Tuple[List[CheckResult], List[str]]:
    """Run the checks of some suites.

    Returns their results, and the suites that could not be loaded.
    """
    peers = tuple(options.peers)
    asked = (options.gpus, options.preflight)
    situation = Situation(expected, dict(os.environ), root, {}, peers, {}, *asked)
    own = [path for name, path in options.own.items() if name in suites]
    quiet = contextlib.redirect_stdout(io.StringIO())
    with prefetch.started(situation, suites), quiet:
        return _with_pytest(catalogue.files_of(suites), own, situation, options)


def _with_pytest(
    files: List[str], own: List[str], situation: Situation, options: RunOptions
) -> Tuple[List[CheckResult], List[str]]:
    # pytest loads slowly, and slow probes run in the meantime.
    from validate.pytest_plugin import Collector
    from validate.testinfra_timeout import limited_commands

    collector = Collector(situation, options, files)
    paths = ([catalogue.SUITES] if files else []) + own
    if paths:
        with _own_pytest(), limited_commands():
            code = _pytest().main(_arguments(own) + paths, plugins=[collector])
        if code == INTERRUPTED and not collector.unloaded:
            raise KeyboardInterrupt
        if code in (INTERNAL_ERROR, USAGE_ERROR):
            collector.unloaded.append("pytest ended with exit code {}".format(int(code)))
    return collector.results, collector.unloaded


INTERRUPTED, INTERNAL_ERROR, USAGE_ERROR = 2, 3, 4
"""pytest.ExitCode."""


def _pytest() -> Any:
    import pytest

    return pytest


def _arguments(own: List[str]) -> List[str]:
    """Return the arguments for pytest.

    Shipped suites run without any conftest.py. The user's suites may have one, and pytest explains
    their assertions. `--confcutdir` keeps pytest from reading every folder above the suites, up to
    the root.
    """
    dropped = NEVER if own else NOT_NEEDED
    arguments = [word for name in dropped for word in ("-p", "no:" + name)]
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

    The caller's pytest settings and the image's pytest plug-ins have no effect, and no byte code is
    written.
    """
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
