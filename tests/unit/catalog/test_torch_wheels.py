"""Test that pip takes the build that a row names, and no other one of the same version."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from imagegen.request.answer import answer_to
from imagegen.resolver.refusal import Refusal

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.workflow.project import Project

METADATA = "Metadata-Version: 2.1\nName: torch\nVersion: {}\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def stand_in(folder: Path, version: str) -> None:
    """Write a wheel with nothing in it but its metadata."""
    info = f"torch-{version}.dist-info"
    with zipfile.ZipFile(folder / f"torch-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{info}/METADATA", METADATA.format(version))
        wheel.writestr(f"{info}/WHEEL", WHEEL)
        wheel.writestr(f"{info}/RECORD", "")


def pinned_by(project: Project, version: str) -> str:
    """Return the requirement of the first pip call for a build."""
    answer = answer_to({"torch": version}, project.catalog)
    assert not isinstance(answer, Refusal)
    lines = project.recipe_of(answer).dockerfile.splitlines()
    return next(line.strip(" '\\&") for line in lines if line.strip().startswith("'torch="))


def test_each_row_without_a_local_version_is_pinned_to_exactly_that(project: Project) -> None:
    rows = [row for row in project.catalog.components["torch"].releases if row.index]
    for row in rows:
        if "+" in row.wheels["torch"]:
            continue
        public = row.version.partition("+")[0]
        there = {one.wheels["torch"] for one in rows if one.version.startswith(f"{public}+")}
        loose, exact = SpecifierSet(f"=={public}"), SpecifierSet(f"==={public}")
        assert [one for one in there if Version(one) in exact] == [public]
        assert len([one for one in there if Version(one) in loose]) == len(there)
        assert pinned_by(project, row.version) == f"torch==={public}"


@pytest.mark.parametrize(
    ("version", "file"),
    [("1.6.0+cu102", "torch-1.6.0-py3"), ("1.6.0+cu101", "torch-1.6.0+cu101-py3")],
)
def test_pip_takes_that_file_of_a_page(
    project: Project, tmp_path: Path, version: str, file: str
) -> None:
    page, got = tmp_path / "page", tmp_path / "got"
    page.mkdir()
    for one in ("1.6.0", "1.6.0+cu92", "1.6.0+cu101", "1.6.0+cpu"):
        stand_in(page, one)
    asked = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-index"]
    asked += ["--find-links", str(page), "--dest", str(got), pinned_by(project, version)]
    subprocess.run(asked, check=True, timeout=60)
    assert [path.name.startswith(file) for path in got.iterdir()] == [True]
