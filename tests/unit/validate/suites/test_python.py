"""Test what is said of the names of Python on PATH, and of what is installed in it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from unit.validate import trees
from validate.check import CheckFailed, CheckWarned
from validate.fixtures import Measure, Situation
from validate.probes.interpreter import Answer
from validate.suites import test_python, test_python_packages

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = '#!/bin/sh\nexec python2 "$@"\n'


def _image(tmp_path: Path, programs: dict[str, str]) -> Situation:
    """Make an image where these programs are on PATH: links, or scripts."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, target in {"python3": sys.executable, **programs}.items():
        if target.startswith("#!"):
            (folder / name).write_text(target)
            (folder / name).chmod(0o755)
        else:
            (folder / name).symlink_to(target)
    facts = {"interpreter": str(folder / "python3")}
    components = {"python": {"version": "3", "facts": facts}, "torch": {"version": "2.6.0"}}
    recipe = trees.expected(tmp_path, components=components)
    return Situation(recipe, {"PATH": str(folder)}, "/", {})


@pytest.mark.parametrize(
    "programs",
    [
        {"python": "python3"},
        {"python": "python3", "pip": f"#!{sys.executable}\n", "pip3": "#!/usr/bin/env python3\n"},
    ],
)
def test_one_python_under_all_its_names(tmp_path: Path, programs: dict[str, str]) -> None:
    measure = Measure()
    test_python.test_single(_image(tmp_path, programs), measure)
    assert measure.text.startswith(", ".join(["python", "python3", *list(programs)[1:]]))


@pytest.mark.parametrize(
    ("programs", "said", "remedy"),
    [
        ({}, "there is no `python` on ", "ln -s {}/bin/python3 /usr/local/bin/python"),
        ({"python": "gone"}, "there is no `python` on ", "ln -s {}/bin/python3 "),
        (
            {"python": SCRIPT},
            "python runs {}/bin/python; ",
            "mv {0}/bin/python {0}/bin/disabled.python && ln -s python3 ",
        ),
        (
            {"python": "python3", "pip": "#!/usr/bin/perl\n"},
            "pip runs /usr/bin/perl; ",
            "mv {0}/bin/pip {0}/bin/disabled.pip",
        ),
    ],
)
def test_a_python_that_is_missing_or_false_is_named(
    tmp_path: Path, programs: dict[str, str], said: str, remedy: str
) -> None:
    with pytest.raises(CheckFailed) as failed:
        test_python.test_single(_image(tmp_path, programs), Measure())
    assert failed.value.measured.startswith(said.format(tmp_path))
    assert failed.value.remedy.startswith(remedy.format(tmp_path))


def _packages(tmp_path: Path, *found: str) -> str:
    """Return what is said of a folder with these distributions."""
    site = tmp_path / "site-packages"
    site.mkdir(exist_ok=True)
    for name in found:
        trees.write(site, f"{name}/METADATA", "Name: x\n")
    image = _image(tmp_path, {"python": "python3"})
    image.once("locate", lambda: Answer({"sites": [str(site)], "folders": []}, ""))
    measure = Measure()
    test_python_packages.test_dists(image, measure)
    return measure.text


def test_distributions_that_are_there_once_are_counted(tmp_path: Path) -> None:
    said = _packages(tmp_path, "torch-2.6.0.dist-info", "numpy-2.2.4.dist-info")
    assert said == f"2 in {tmp_path}/site-packages"


def test_a_second_version_fails_and_the_one_that_the_recipe_does_not_name_goes(
    tmp_path: Path,
) -> None:
    with pytest.raises(CheckFailed, match=r"^torch is there 2 times: ") as failed:
        _packages(tmp_path, "torch-2.6.0.dist-info", "torch-1.9.0.dist-info")
    assert not isinstance(failed.value, CheckWarned)
    moved = failed.value.remedy.partition(" mv ")[2]
    assert f"{tmp_path}/site-packages/torch-1.9.0.dist-info " in moved
    assert "torch-2.6.0" not in moved
    assert failed.value.remedy.kind == "shell"


def test_of_two_versions_that_the_recipe_does_not_name_neither_goes(tmp_path: Path) -> None:
    with pytest.raises(CheckFailed, match=r"^six is there 2 times: ") as failed:
        _packages(tmp_path, "six-1.16.0.dist-info", "six-1.17.0.dist-info")
    assert failed.value.remedy.kind == "build"


def test_what_pip_left_is_a_warning(tmp_path: Path) -> None:
    with pytest.raises(CheckWarned, match=r"was left by pip$") as warned:
        _packages(tmp_path, "~orch-2.6.0.dist-info")
    assert warned.value.remedy == f"rm -rf '{tmp_path}/site-packages/~orch-2.6.0.dist-info'"
