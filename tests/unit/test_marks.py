"""Test that `make test` leaves out cases with the mark `long` and keeps a case of everything."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from typing import NamedTuple

from zoo_keeper import animals

from unit.conftest import REPOSITORY

INTEGRATION = REPOSITORY / "tests/integration"

LIST = """
import json, sys, pytest

class Lists:
    def pytest_collection_finish(self, session):
        for item in session.items:
            print(json.dumps([item.nodeid, [mark.name for mark in item.iter_markers()]]))

sys.exit(pytest.main(["--collect-only", "-qq", "-p", "no:cacheprovider", sys.argv[1]], [Lists()]))
"""


class Case(NamedTuple):
    """Hold `module.py::function[parameters]` and its marks."""

    module: str
    function: str
    parameters: str
    marks: tuple[str, ...]


@cache
def cases() -> tuple[Case, ...]:
    """Return all integration tests, as pytest finds them."""
    command = [sys.executable, "-c", LIST, str(INTEGRATION)]
    ended = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return tuple(map(_case, filter(lambda line: line.startswith("["), ended.stdout.splitlines())))


def _case(line: str) -> Case:
    name, marks = json.loads(line)
    module, _, rest = name.partition("::")
    function, _, parameters = rest.partition("[")
    return Case(module, function, parameters.removesuffix("]"), tuple(marks))


def in_make_test() -> list[Case]:
    return [case for case in cases() if "long" not in case.marks]


def test_every_module_keeps_a_test() -> None:
    modules = {path.relative_to(REPOSITORY).as_posix() for path in INTEGRATION.rglob("test_*.py")}
    assert {case.module for case in in_make_test()} == modules


LONG_ALONE = {
    "test_one_horovod_serves_three_frameworks",
    "test_tensorflow_trains_where_the_documents_start_it",
    "test_nobody_is_blamed_where_all_are_slow",
}
"""Functions without a short case: an image of three frameworks, or four slow hosts."""


def test_every_function_keeps_a_case() -> None:
    kept = {(case.module, case.function) for case in in_make_test()}
    without = {(case.module, case.function) for case in cases()} - kept
    assert {function for _, function in without} == LONG_ALONE


def test_every_module_of_the_main_path_keeps_a_test_on_docker_26() -> None:
    on_both = {case.module for case in cases() if "both_engines" in case.marks}
    assert {case.module for case in in_make_test() if "docker26" in case.parameters} == on_both


def test_the_zoo_keeps_an_example_of_every_class() -> None:
    """The classes: a suite that fails, one that warns, an exit code of its own."""
    kept = {case.parameters for case in in_make_test() if "is_broken_is_named" in case.function}
    zoo = animals()
    everything = {one for animal in zoo for one in animal.classes}
    assert {one for animal in zoo if animal.name in kept for one in animal.classes} == everything
    assert len(kept) < len(zoo)
