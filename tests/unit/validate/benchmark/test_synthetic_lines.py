"""Test what the benchmark scripts share: how long they train, and the lines that they print."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from validate import benchmark
from validate.benchmark.output import parse

if TYPE_CHECKING:
    from types import ModuleType


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Import it as the scripts do, which are started from its folder."""
    monkeypatch.syspath_prepend(Path(benchmark.__file__).parent)
    sys.modules.pop("synthetic_lines", None)
    return importlib.import_module("synthetic_lines")


def parsed(lines: ModuleType, *words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="small")
    parser.add_argument("--batch-size", type=int, default=8)
    lines.add_length(parser)
    found = parser.parse_args(words)
    lines.fill_length(found)
    return found


def test_a_length_sets_what_nothing_else_sets(lines: ModuleType) -> None:
    usual = parsed(lines)
    assert (usual.num_warmup_batches, usual.num_batches_per_iter, usual.num_iters) == (10, 10, 10)
    quick = parsed(lines, "--length", "quick", "--num-iters", "5")
    assert (quick.num_warmup_batches, quick.num_batches_per_iter, quick.num_iters) == (2, 2, 5)


def test_what_is_printed_is_what_is_parsed(
    lines: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    trained: list[int] = []

    def seconds(batches: int) -> float:
        trained.append(batches)
        return 0.5

    job = SimpleNamespace(rank=0, size=2, sum=lambda value: value + 2)
    lines.say_sum(job)
    lines.measure(parsed(lines, "--length", "quick"), job, "CPU", seconds)
    text = capsys.readouterr().out
    found = parse(text)
    assert trained == [2, 2, 2, 2]
    assert found.iterations == [32.0, 32.0, 32.0]
    assert [(one.ranks, one.device, one.speed, one.spread) for one in found.totals] == [
        (2, "CPU", 64.0, 0.0)
    ]
    assert found.sums == [(0, 2, 3.0)]
    assert text.splitlines()[1:4] == ["Model: small", "Batch size: 8", "Number of CPUs: 2"]


def test_other_ranks_print_nothing(lines: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    job = SimpleNamespace(rank=1, size=2)
    lines.measure(parsed(lines, "--length", "quick"), job, "CPU", lambda _: 1.0)
    assert capsys.readouterr().out == ""
