"""Test the suite of validate itself: the environment of the image, and its expectation file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from unit.validate import trees
from validate.check import FAILED, PASSED

if TYPE_CHECKING:
    from pathlib import Path


def test_a_path_may_be_added_to_but_not_taken_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = trees.expected(tmp_path, env={"PATH": "/opt/mpi/bin:/bin", "LANG": "C.UTF-8"})
    monkeypatch.setenv("LANG", "C.UTF-8")
    base = os.environ["PATH"]
    monkeypatch.setenv("PATH", f"/conda/bin:/opt/mpi/bin:{base}:/bin")
    assert trees.findings(tmp_path, "validate", recipe)["env.contract"].outcome == PASSED
    monkeypatch.setenv("PATH", f"{base}:/bin")
    one = trees.findings(tmp_path, "validate", recipe)["env.contract"]
    assert one.outcome == FAILED
    assert one.remedy.startswith("export PATH=/opt/mpi/bin:/bin   # ")


def test_an_expectation_file_that_anyone_may_write_fails(tmp_path: Path) -> None:
    recipe = trees.expected(tmp_path)
    assert trees.findings(tmp_path, "validate", recipe)["env.manifest"].outcome == PASSED
    (tmp_path / "image.json").chmod(0o666)
    one = trees.findings(tmp_path, "validate", recipe)["env.manifest"]
    assert one.measured == f"{tmp_path}/image.json can be written by others (0666)"


def test_the_expectations_of_another_tool_fail(tmp_path: Path) -> None:
    recipe = trees.expected(tmp_path, components={"validate": {"version": "0.0.9"}})
    one = trees.findings(tmp_path, "validate", recipe)["env.manifest"]
    assert one.measured == "this is validate 0.1.0, the image was made with 0.0.9"


@pytest.mark.parametrize(
    ("env", "outcome"),
    [
        ({"LANG": "C"}, PASSED),  # LC_ALL is in force
        ({"LC_ALL": ""}, PASSED),  # LANG is in force
        ({"LC_ALL": "en_US.utf8"}, PASSED),
        ({"LC_ALL": "C"}, FAILED),
        ({"LC_ALL": "", "LC_CTYPE": "POSIX"}, FAILED),
        ({"LANG": "C", "LC_ALL": ""}, FAILED),
        ({"PYTHONDONTWRITEBYTECODE": "yes"}, PASSED),
        ({"PYTHONDONTWRITEBYTECODE": ""}, FAILED),
        ({"NVIDIA_VISIBLE_DEVICES": "GPU-1,GPU-2"}, PASSED),
        ({"NVIDIA_DRIVER_CAPABILITIES": "all"}, PASSED),
        ({"NVIDIA_DRIVER_CAPABILITIES": "utility,graphics,compute"}, PASSED),
        ({"NVIDIA_DRIVER_CAPABILITIES": "utility"}, FAILED),
        ({"LD_LIBRARY_PATH": "/mine:/opt/a/:/opt/b"}, PASSED),
    ],
)
def test_a_variable_that_does_what_the_image_set_it_for_is_no_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, env: dict[str, str], outcome: str
) -> None:
    promised = {
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "NVIDIA_VISIBLE_DEVICES": "all",
        "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
        "LD_LIBRARY_PATH": "/opt/a:/opt/b",
    }
    monkeypatch.delenv("LC_CTYPE", raising=False)
    for name, value in {**promised, **env}.items():
        monkeypatch.setenv(name, value)
    recipe = trees.expected(tmp_path, env=promised)
    found = trees.findings(tmp_path, "validate", recipe)["env.contract"]
    assert found.outcome == outcome, found.measured
    if outcome == FAILED:
        assert len(found.measured.split("; ")) == 1
