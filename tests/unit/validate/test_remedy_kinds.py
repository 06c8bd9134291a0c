"""Test that each way in which a check can fail has a remedy of a known kind.

Types hold that a remedy has a kind; here it is that there is one. What the tests of the suites make
fail is looked at in `trees.assert_remedy`, with the values of the machine.
"""

from __future__ import annotations

import ast
from functools import cache
from typing import TYPE_CHECKING

import pytest

from unit.conftest import REPOSITORY
from unit.validate.trees import readable
from validate.catalogue import all_checks
from validate.host_checks import HOST_CHECKS
from validate.remedy import KINDS, SHELL

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from validate.check import Check

SUITES = sorted((REPOSITORY / "validate/suites").glob("test_*.py"))
CHECKS = {one.id: one for _, one in (*all_checks(), *HOST_CHECKS)}
ENDS = ("fail", "warn", "judge")
DESTROYS = (
    "rm -f /usr",
    "rm -rf /usr",
    "rm /usr/bin",
    "ln -sf",
    "|| rm",
    "apt-file",
    "mlnxofedinstall",
)


@cache
def functions(path: Path) -> dict[str, ast.FunctionDef]:
    tree = ast.parse(path.read_text())
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def called(node: ast.AST) -> Iterator[ast.Call]:
    yield from (one for one in ast.walk(node) if isinstance(one, ast.Call))


def name_of(call: ast.Call) -> str:
    """Return what is called; `(fail if x else warn)(…)` calls `fail`."""
    target = call.func.body if isinstance(call.func, ast.IfExp) else call.func
    return target.id if isinstance(target, ast.Name) else ""


def says_how(call: ast.Call) -> bool:
    """Return whether a call of `fail` has a remedy, also one that it may lack at times."""
    starred = any(isinstance(one, ast.Starred) for one in call.args)
    return starred or len(call.args) > 2 or any(one.arg == "remedy" for one in call.keywords)


def reached(path: Path, start: str) -> set[str]:
    """Return the functions of a file that one of them calls, directly or not, and itself."""
    there, found, waiting = functions(path), {start}, [start]
    while waiting:
        new = {name_of(call) for call in called(there[waiting.pop()])} & {*there} - found
        found |= new
        waiting += sorted(new)
    return found


def check_id(node: ast.FunctionDef) -> str:
    """Return the id of a check; empty for another function."""
    for call in node.decorator_list:
        if isinstance(call, ast.Call) and name_of(call) == "check":
            first = call.args[0]
            return str(first.value) if isinstance(first, ast.Constant) else ""
    return ""


def silent_ends(path: Path) -> Iterator[str]:
    """Yield the checks that may end without a remedy, each with the line."""
    for name, node in functions(path).items():
        one = CHECKS.get(check_id(node))
        if one is None or one.remedy.given:
            continue
        for other in sorted(reached(path, name)):
            for call in called(functions(path)[other]):
                if name_of(call) in ENDS and not says_how(call):
                    yield f"{one.id}: {path.name}:{call.lineno}"


@pytest.mark.parametrize("path", SUITES, ids=lambda path: path.stem)
def test_every_way_to_fail_has_a_remedy(path: Path) -> None:
    assert [*silent_ends(path)] == []


SILENT = """
@check("py.single", "p")
def test_x():
    _y()

def _y():
    fail("no"{})
"""


def test_the_search_finds_a_silent_end(tmp_path: Path) -> None:
    paths = [tmp_path / "test_one.py", tmp_path / "test_two.py"]
    for path, more in zip(paths, ("", ', remedy=in_shell("a")'), strict=True):
        path.write_text(SILENT.format(more))
    assert [*map(list, map(silent_ends, paths))] == [["py.single: test_one.py:7"], []]


@pytest.mark.parametrize("one", CHECKS.values(), ids=CHECKS)
def test_what_a_check_says_by_itself_is_of_a_known_kind(one: Check) -> None:
    if not one.remedy.given:
        return
    assert one.remedy.kind in KINDS
    if one.remedy.kind == SHELL:
        assert readable(one.remedy)
    if one.remedy.look:
        assert readable(one.remedy.look)


@pytest.mark.parametrize("path", sorted((REPOSITORY / "validate").rglob("*.py")), ids=str)
def test_no_line_to_paste_destroys_what_is_genuine(path: Path) -> None:
    texts = [one.value for one in ast.walk(ast.parse(path.read_text()))
             if isinstance(one, ast.Constant) and isinstance(one.value, str)]  # fmt: skip
    assert [text for text in texts for words in DESTROYS if words in text] == []
    # The lists are removed from images: without them apt-get finds no package.
    installs = [text for text in texts if "apt-get install" in text]
    assert [text for text in installs if "apt-get update && " not in text] == []
    pips = [text for text in texts if "-m pip install" in text or "-m pip uninstall" in text]
    assert [text for text in pips if "PIP_BREAK_SYSTEM_PACKAGES=1 " not in text] == []
