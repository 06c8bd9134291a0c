"""Test `catalog refresh` with this host's pip and an index that is a folder."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from command_line import CommandLine

METADATA = """\
Metadata-Version: 2.1
Name: {0}
Version: {1}
Requires-Dist: nvidia-nccl-cu12==2.99.1
Requires-Dist: filelock
"""
TAG = "cp312-cp312-manylinux_2_28_x86_64"


def wheel(folder: Path, project: str, version: str) -> None:
    """Write an empty wheel with its metadata."""
    info = f"{project}-{version}.dist-info"
    with zipfile.ZipFile(folder / f"{project}-{version}-{TAG}.whl", "w") as file:
        file.writestr(f"{info}/METADATA", METADATA.format(project, version))
        file.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {TAG}\n")
        file.writestr(f"{info}/RECORD", "")


@pytest.fixture
def folder(tmp_path: Path) -> dict[str, str]:
    """Return pip's settings for an index that has only torch 98.1 and 98.2."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for version in ("98.1", "98.2"):
        wheel(wheels, "torch", version)
    return {"PIP_FIND_LINKS": str(wheels), "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": "/dev/null"}


def test_new_releases_of_the_index_are_proposed_and_nothing_is_written(
    command_line: CommandLine, folder: dict[str, str]
) -> None:
    ended = command_line("catalog", "refresh", "torch", "--limit", "1", environ=folder)
    _, _, header, line = ended.out.splitlines()
    found = dict(zip(header.split(","), line.split(","), strict=True))
    assert {name: cell for name, cell in found.items() if cell} == {
        "kind": "pypi",
        "version": "98.2",
        "wheel": "98.2",
        "python": "3.12",
        "glibc": ">=2.28",
    }
    assert "98.1" not in ended.out
    assert "1 more: --limit 2" in ended.err
    assert not (command_line.cwd / "dockerfiles").exists()


def test_metadata_says_what_a_wheel_asks_for(
    command_line: CommandLine, folder: dict[str, str]
) -> None:
    arguments = ("catalog", "refresh", "torch", "--metadata", "--format", "json")
    rows = command_line(*arguments, environ=folder).result
    assert [row["version"] for row in rows] == ["98.2", "98.1"]
    assert rows[0]["notes"] == ["its metadata asks for nvidia-nccl-cu12==2.99.1"]
