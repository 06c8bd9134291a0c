"""Test the suite of validate itself: the environment of the image, and its expectation file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from unit.validate import trees
from validate.check import FAILED, PASSED

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


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
