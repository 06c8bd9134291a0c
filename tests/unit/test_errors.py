"""Test how an error reads: what and where, evidence, one action; and its exit code."""

from __future__ import annotations

import pytest

from imagegen import errors
from imagegen.errors import ConfigError, ImagegenError, Problem

CLASSES = [
    value
    for value in vars(errors).values()
    if isinstance(value, type) and issubclass(value, ImagegenError)
]


def test_a_problem_says_where_what_and_one_action() -> None:
    problem = Problem(
        "unknown key", "m.yaml", 3, "axes.os", ("known: a, b", "more"), "did you mean `a`?"
    )
    assert str(problem) == (
        "error: m.yaml:3: `axes.os`: unknown key\n  known: a, b\n  more\n\nhint: did you mean `a`?"
    )


def test_a_problem_in_no_file_is_one_line() -> None:
    assert str(Problem("it broke")) == "error: it broke"
    assert str(Problem("it broke", key="tag")) == "error: `tag`: it broke"
    assert str(Problem("it broke", file="m.yaml")) == "error: m.yaml: it broke"


def test_an_error_carries_all_its_problems() -> None:
    error = ConfigError(Problem("one"), Problem("two"))
    assert str(error) == "error: one\n\nerror: two"


def test_of_makes_an_error_of_its_own_class() -> None:
    error = ConfigError.of("text", evidence=["e"], hint="h")
    assert type(error) is ConfigError
    assert error.problems == (Problem("text", evidence=("e",), hint="h"),)


@pytest.mark.parametrize("kind", CLASSES)
def test_every_class_has_a_documented_exit_code_of_its_own(kind: type[ImagegenError]) -> None:
    assert kind.exit_code in dict(errors.EXIT_CODES)
    assert [other for other in CLASSES if other.exit_code == kind.exit_code] == [kind]
    assert kind.__doc__


def test_every_documented_exit_code_is_used() -> None:
    assert {code for code, _ in errors.EXIT_CODES} == {0, *(kind.exit_code for kind in CLASSES)}
