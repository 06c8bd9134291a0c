"""Test what is installed in a folder of Python: twice, hollow, left behind, or led to nowhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unit.validate import trees
from validate.probes.distributions import (
    Distribution,
    hollow,
    in_folder,
    left_by_pip,
    lost_links,
    twice,
)

if TYPE_CHECKING:
    from pathlib import Path


def _installed(site: Path, *names: str) -> None:
    for name in names:
        file = "METADATA" if name.endswith(".dist-info") else "PKG-INFO"
        trees.write(site, f"{name}/{file}", "Name: x\n")


def test_a_distribution_that_is_there_twice_is_found_by_any_spelling(tmp_path: Path) -> None:
    _installed(tmp_path, "torch-2.6.0.dist-info", "torch-1.13.0a0+x-py3.11.egg-info")
    _installed(tmp_path, "Jaraco.Text-3.0.dist-info", "jaraco_text-3.12.dist-info")
    _installed(tmp_path, "numpy-2.0.dist-info", "numpy_quaternion-2023.0.dist-info")
    found = [[(one.name, one.version) for one in same] for same in twice(_of(tmp_path))]
    jaraco = [("jaraco-text", "3.0"), ("jaraco-text", "3.12")]
    assert found == [jaraco, [("torch", "1.13.0a0+x"), ("torch", "2.6.0")]]


def _of(site: Path) -> list[Distribution]:
    return in_folder(str(site))


def test_an_editable_install_beside_its_metadata_is_no_second_one(tmp_path: Path) -> None:
    _installed(tmp_path, "mine.egg-info")
    trees.write(tmp_path, "mine.egg-link", f"{tmp_path}\n.\n")
    assert twice(_of(tmp_path)) == []


def test_metadata_without_modules_and_modules_without_metadata(tmp_path: Path) -> None:
    _installed(tmp_path, "full-1.dist-info", "gone-1.dist-info", "ext-1.dist-info")
    for name in ("full", "gone", "ext"):
        trees.write(tmp_path, f"{name}-1.dist-info/top_level.txt", f"{name}\n")
    trees.write(tmp_path, "full/__init__.py")
    trees.write(tmp_path, "ext.cpython-311-x86_64-linux-gnu.so")
    (tmp_path / "empty-1.dist-info").mkdir()
    assert hollow(_of(tmp_path)) == [
        f"{tmp_path}/empty-1.dist-info has no METADATA",
        f"{tmp_path}/gone-1.dist-info is there, its module `gone` is not",
    ]


def test_a_file_of_metadata_is_whole(tmp_path: Path) -> None:
    """Distutils writes *.egg-info as one file."""
    trees.write(tmp_path, "old-1-py3.6.egg-info", "Name: old\n")
    assert hollow(_of(tmp_path)) == []


def test_what_pip_left_and_what_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "~orch-2.0.dist-info").mkdir()
    (tmp_path / "~orch").mkdir()
    trees.write(tmp_path, "a.egg-link", "/nowhere/a\n.")
    trees.write(tmp_path, "b.pth", f"# /nowhere/c\nimport os\n{tmp_path}\nhere\n/nowhere/b\n")
    (tmp_path / "here").mkdir()
    finder = "MAPPING: dict[str, str] = {'mine': '/nowhere/mine'}\n"
    trees.write(tmp_path, "__editable___mine_1_finder.py", finder)
    assert left_by_pip(str(tmp_path)) == [f"{tmp_path}/~orch", f"{tmp_path}/~orch-2.0.dist-info"]
    assert lost_links(str(tmp_path)) == [
        (f"{tmp_path}/__editable___mine_1_finder.py", "/nowhere/mine"),
        (f"{tmp_path}/a.egg-link", "/nowhere/a"),
        (f"{tmp_path}/b.pth", "/nowhere/b"),
    ]
