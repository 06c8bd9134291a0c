"""Test the page of `imagegen history`: what the journal says of runs, and of one run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from imagegen.journal.journal import open_journal
from imagegen.model.build import BuildRecord, StepRecord

if TYPE_CHECKING:
    from collections.abc import Callable

    from unit.conftest import Ended


def one_build() -> int:
    journal = open_journal()
    run = journal.start_run("build", ["build", "-m", "small"])
    step = StepRecord("[beta 1/1] RUN x", "beta", 31.0, False, "beta", "1.13.1", 700)
    cached = StepRecord("[alpha 1/1] RUN y", "alpha", 0.0, True, "alpha", "3.11", 0)
    image_id = f"sha256:{'a' * 64}"
    record = BuildRecord(
        "small/a", "t:a", "r", "built", image_id, seconds=62.0, steps=(step, cached)
    )
    journal.add_build(run, record)
    journal.end_run(run, 0)
    return run


def test_the_latest_run_comes_first(run: Callable[..., Ended]) -> None:
    one_build()
    open_journal().start_run("publish", [])
    rows = json.loads(run("history", "--format", "json").out)
    assert [(row["verb"], row["state"]) for row in rows] == [("publish", "killed"), ("build", "0")]
    lines = run("history", "--limit", "1").out.splitlines()
    assert lines[0].split() == ["run", "verb", "started", "exit", "outcomes"]
    assert [line.split()[1] for line in lines[1:]] == ["publish"]


def test_one_run_shows_its_cells_and_their_steps(run: Callable[..., Ended]) -> None:
    ended = run("history", str(one_build()))
    assert ended.out.splitlines() == [
        f"small/a  built  1m02s  0 B  {'a' * 12}",
        "  step               took    size",
        "  [beta 1/1] 1.13.1  31.0s   700 B",
        "  [alpha 1/1] 3.11   cached  -",
    ]


def test_a_run_that_built_nothing_is_an_error(run: Callable[..., Ended]) -> None:
    ended = run("history", "7")
    assert (ended.code, ended.err.splitlines()[0]) == (
        3,
        "error: run 7 built nothing, or there is none",
    )
