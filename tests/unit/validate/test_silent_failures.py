"""Test that every silent failure is made on purpose, by the zoo or by a tree of files."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from zoo_keeper import ZOO, animals

from validate.catalogue import all_checks

if TYPE_CHECKING:
    from collections.abc import Iterator

REQUIRED = {
    *("E1", "E2", "E4", "E5", "E6", "E7", "E8", "E14", "E15", "E16", "E20", "E21", "E24", "E25"),
    *("E27", "E28", "E31", "E32", "E33", "E34"),
}
ANIMALS = animals()
TABLE = yaml.safe_load((ZOO / "silent_failures.yaml").read_text())
IN_LAYERS = "image."
"""Checks of `imagegen validate` itself, which sees the layers."""


def _marked() -> Iterator[tuple[str, str]]:
    """Yield each failure that a test in or below this folder is marked with, and its text."""
    for path in sorted(Path(__file__).parent.rglob("test_*.py")):
        text = path.read_text()
        for node in ast.parse(text).body:
            for one in getattr(node, "decorator_list", ()):
                if isinstance(one, ast.Call) and ast.unparse(one.func) == "pytest.mark.silent":
                    yield ast.literal_eval(one.args[0]), ast.get_source_segment(text, node) or ""


MARKED = [*_marked()]


def _in_the_zoo(number: str) -> bool:
    """Return whether an animal makes a failure and one of the table's checks finds it."""
    said = TABLE[number]
    made = [animal for animal in ANIMALS if number in animal.silent]
    assert all(said.get("exit_code", animal.exit_code) == animal.exit_code for animal in made)
    assert all(not said.get("caught_by") or animal.named & {*said["caught_by"]} for animal in made)
    return bool(made)


def _in_a_tree(number: str) -> bool:
    texts = [text for marked, text in MARKED if marked == number]
    assert all(any(f'"{name}"' in text for name in TABLE[number]["caught_by"]) for text in texts)
    return bool(texts)


@pytest.mark.parametrize("number", sorted(REQUIRED | {*TABLE}))
def test_a_silent_failure_is_made_and_caught(number: str) -> None:
    # A list, so that both run: each has assertions of its own.
    assert any([_in_the_zoo(number), _in_a_tree(number)])


def test_only_checks_that_there_are_catch_them() -> None:
    known = {entry.check.id for entry in all_checks()}
    named = {name for said in TABLE.values() for name in said.get("caught_by", ())}
    assert {name for name in named if not name.startswith(IN_LAYERS)} <= known


def test_no_animal_makes_what_the_table_does_not_know() -> None:
    made = {number for animal in ANIMALS for number in animal.silent}
    assert made | {number for number, _ in MARKED} <= {*TABLE}
