"""Test that only a component's folder, its suite and matrices use the name of the component.

Other code reads what it has to know of a component from its component.yaml.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import pytest

from unit.conftest import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COMPONENTS = {path.parent.name for path in REPOSITORY.glob("dockerfiles/components/*/*.yaml")}
CODE = [
    *sorted((REPOSITORY / "imagegen").rglob("*.py")),
    *sorted((REPOSITORY / "validate").glob("*.py")),
]

THE_TOOL = {"validate"}
"""The component of that name is the tool's own program, which is a verb and a package too."""

HARDWARE = "words of `--profile`, of hardware, and of skips, which need no component"
ALLOWED = {
    "imagegen/config/schemas.py": ({"rdma", "harp"}, HARDWARE),
    "imagegen/model/cell.py": ({"rdma", "harp"}, HARDWARE),
    "validate/requirements.py": ({"rdma", "harp", "no-rdma-hw", "rdma-not-passed"}, HARDWARE),
    "validate/check.py": ({"no-rdma-hw", "rdma-not-passed"}, HARDWARE),
    "imagegen/validation/reuse.py": ({"no-rdma-hw", "rdma-not-passed"}, HARDWARE),
    "imagegen/engine/containers/surroundings.py": ({"rdma"}, "a driver of the kernel"),
    "imagegen/engine/images/contents.py": ({"gcc"}, "a program on the PATH"),
    "imagegen/maintenance/doctor.py": ({"python"}, "the Python of this machine"),
    "imagegen/launcher/trainjob.py": ({"torch"}, "a key of the manifest"),
    "validate/catalogue.py": ({"nccl-tests", "cuda"}, "a check that is left out; a fact"),
}
"""File -> words that are no component there, and why."""


def words_of(text: str) -> set[str]:
    """Return the names in `rdma+gdr` or `torch-nccl`; empty for a sentence or a path."""
    return set(re.split(r"[+-]", text)) if re.fullmatch(r"[a-z0-9][a-z0-9+.-]*", text) else set()


def literals(tree: ast.AST) -> Iterator[ast.Constant]:
    """Yield the strings of a module without its docstrings."""
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node


def named_in(path: Path) -> dict[str, int]:
    """Map each literal of a file that names a component to a line that has it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        node.value: node.lineno
        for node in literals(tree)
        if isinstance(node.value, str) and words_of(node.value) & (COMPONENTS - THE_TOOL)
    }


def test_no_code_names_a_component() -> None:
    found = {path.relative_to(REPOSITORY).as_posix(): named_in(path) for path in CODE}
    assert [
        f"{file}:{line}: {word}"
        for file, words in found.items()
        for word, line in words.items()
        if word not in ALLOWED.get(file, (set(), ""))[0]
    ] == []
    assert {file: words for file, (words, _) in ALLOWED.items()} == {
        file: {*words} for file, words in found.items() if words
    }


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("x = 'nccl'", {"nccl"}),
        ("def f(): return f'{1}' in {'rdma+gdr': 2}", {"rdma+gdr"}),
        ("match x:\n    case 'torch-nccl': pass", {"torch-nccl"}),
        ("'''torch'''\nx = 'what torch needs'\ny = '/usr/lib/gcc'", set()),
    ],
)
def test_literals_are_found_and_sentences_are_not(
    text: str, found: set[str], tmp_path: Path
) -> None:
    path = tmp_path / "code.py"
    path.write_text(text)
    assert {*named_in(path)} == found
