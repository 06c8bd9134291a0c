"""Test the page of `imagegen launch`: a cell and the options become one command."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from imagegen.workflow.launch import LaunchOptions, launch

if TYPE_CHECKING:
    from collections.abc import Callable

    from unit.conftest import Ended

CELL = ("launch", "cpu/debian12-none")


@pytest.mark.usefixtures("project")
def test_the_benchmark_is_told_when_its_ranks_train_together(run: Callable[..., Ended]) -> None:
    mpirun = json.loads(run(*CELL, "--as", "mpirun", "--format", "json").out)
    assert mpirun["form"] == "mpirun"
    assert mpirun["image"] == "imagegen/cpu:debian12-torch1.13.1-none"
    assert mpirun["command"].endswith(" \\\n  --via horovod")
    assert "--via" not in run(*CELL, "--as", "mpirun", "--accel", "none").out
    assert "--via" not in run(*CELL, "--as", "mpirun", "--script", "/mine.py").out
    assert "--via" not in run(*CELL).out


def test_options_have_the_defaults_of_the_command_line(
    run: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[LaunchOptions] = []
    monkeypatch.setattr(f"{launch.__module__}.launch", lambda options, _: asked.append(options))
    run("launch", "cpu/x")
    assert asked == [LaunchOptions("cpu/x")]
