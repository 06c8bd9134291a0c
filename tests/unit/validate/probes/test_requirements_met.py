"""Test that our reading of what packages require says yes only where `pip check` does."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from validate.probes.requirements_met import all_met

if TYPE_CHECKING:
    from pathlib import Path

PIP = {"pip-25.1.dist-info/METADATA": "Metadata-Version: 2.1\nName: pip\nVersion: 25.1\n"}


def package(name: str, version: str, *requires: str, tag: str = "") -> dict[str, str]:
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Dist: {one}" for one in requires]
    home = f"{name.replace('-', '_')}-{version}.dist-info"
    files = {f"{home}/METADATA": "\n".join(lines) + "\n"}
    return {**files, f"{home}/WHEEL": f"Wheel-Version: 1.0\nTag: {tag}\n"} if tag else files


def installed(folder: Path, *packages: dict[str, str]) -> Path:
    for files in packages:
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
    return folder


EGG = {
    "old-1.0.egg-info/PKG-INFO": "Metadata-Version: 1.1\nName: old\nVersion: 1.0\n",
    "old-1.0.egg-info/requires.txt": "lib<2\n\n[fast]\nspeedups\n",
}

GOOD = {
    "alone": [package("one", "1.0")],
    "in-its-version": [package("one", "1.0", "lib>=1,<2"), package("lib", "1.5")],
    "a-name-in-another-spelling": [package("one", "1.0", "My.Lib"), package("my-lib", "1")],
    "a-pre-release": [package("one", "1.0", "lib>=1.0"), package("lib", "1.1rc1")],
    "for-another-system": [package("one", "1.0", 'pywin32; sys_platform == "win32"')],
    "an-extra": [package("one", "1.0", 'speedups; extra == "fast"')],
    "an-egg-info": [EGG, package("lib", "1.9")],
    "a-pure-wheel": [package("one", "1.0", tag="py3-none-any")],
}
BAD = {
    "missing": [package("one", "1.0", "lib")],
    "too-new": [package("one", "1.0", "lib<2"), package("lib", "2.0")],
    "a-marker-that-holds": [package("one", "1.0", 'lib; python_version >= "3"')],
    "an-egg-info-that-lacks-something": [EGG],
    "a-wheel-of-another-platform": [package("one", "1.0", tag="cp27-cp27m-win32")],
}


@pytest.mark.parametrize("packages", GOOD.values(), ids=GOOD.keys())
def test_what_fits_together_needs_no_pip(tmp_path: Path, packages: list[dict[str, str]]) -> None:
    assert all_met([str(installed(tmp_path, PIP, *packages))])


@pytest.mark.parametrize("packages", BAD.values(), ids=BAD.keys())
def test_what_does_not_fit_is_left_to_pip(tmp_path: Path, packages: list[dict[str, str]]) -> None:
    assert not all_met([str(installed(tmp_path, PIP, *packages))])


def test_the_first_folder_of_the_path_counts(tmp_path: Path) -> None:
    early = installed(tmp_path / "early", PIP, package("lib", "2.0"))
    late = installed(tmp_path / "late", package("lib", "1.0"), package("one", "1.0", "lib<2"))
    assert not all_met([str(early), str(late)])
    assert all_met([str(late), str(early)])


def test_what_is_not_understood_is_left_to_pip(tmp_path: Path) -> None:
    assert not all_met([str(installed(tmp_path / "a", package("one", "1.0")))])  # no pip
    broken = package("one", "1.0", "not a requirement !!")
    assert not all_met([str(installed(tmp_path / "b", PIP, broken))])
    (tmp_path / "c/x.egg").mkdir(parents=True)
    assert not all_met([str(installed(tmp_path / "c", PIP))])


def test_pip_itself_says_the_same(tmp_path: Path) -> None:
    """Ask the pip of this Python about some of the made-up folders."""
    for name in ("an-egg-info", "too-new"):
        packages = {**GOOD, **BAD}[name]
        folder = installed(tmp_path / name, *packages)
        argv = [sys.executable, "-m", "pip", "--disable-pip-version-check", "check"]
        said = subprocess.run(
            argv, env={"PYTHONPATH": str(folder)}, capture_output=True, text=True, check=False
        )
        mine = [line for line in said.stdout.splitlines() if line.startswith(("one ", "old "))]
        assert bool(mine) == (name in BAD), said.stdout
