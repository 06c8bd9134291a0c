"""Test what the journal has measured of exports and gates. Steps: see test_journal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from imagegen.journal.costs import TELLING_BYTES
from imagegen.journal.journal import Journal, open_journal
from imagegen.model.build import EXPORT_STEP, GATE_STEP, BuildRecord, StepRecord
from imagegen.model.validation import ValidationRecord

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return open_journal(tmp_path / "journal.db")


def export_of(
    journal: Journal, run: int, size: int, seconds: float, *, cached: bool = False, cell: str = "c"
) -> None:
    steps = (
        StepRecord("[torch 1/1] RUN x", "torch", 30.0, cached, "torch", "2", size),
        StepRecord(EXPORT_STEP, "", seconds, cached=False),
    )
    record = BuildRecord(f"m/{cell}", "t", "r", "built", f"sha256:{cell}", steps=steps)
    journal.add_build(run, record)


def test_nothing_is_known_before_the_first_export(journal: Journal) -> None:
    assert (journal.export_speed(), journal.gate_seconds()) == (None, {})


def test_exports_of_little_or_of_what_was_there_say_nothing_of_the_speed(journal: Journal) -> None:
    run = journal.start_run("build", [])
    export_of(journal, run, TELLING_BYTES - 1, 5.0)
    export_of(journal, run, 5 * TELLING_BYTES, 0.1, cached=True)
    export_of(journal, run, 5 * TELLING_BYTES, 0.0)
    assert journal.export_speed() is None


def test_the_speed_is_that_of_the_cell_that_exports_for_all(journal: Journal) -> None:
    for seconds in (10.0, 20.0, 40.0):
        run = journal.start_run("build", [])
        export_of(journal, run, 400_000_000, seconds, cell="packer")
        export_of(journal, run, 400_000_000, 0.3, cell="other")
    assert journal.export_speed() == 20_000_000


def test_the_export_is_no_cost_of_a_component(journal: Journal) -> None:
    run = journal.start_run("build", [])
    export_of(journal, run, 5, 7.0)
    assert journal.step_costs() == {("torch", "2"): (30.0, 5)}


def test_gates_are_those_of_builds(journal: Journal) -> None:
    for seconds in (2.0, 4.0, 9.0):
        run = journal.start_run("build", [])
        export_of(journal, run, 5, 1.0)
        for tier in ("static", "full"):
            record = ValidationRecord("sha256:c", "t", tier, True, {}, seconds)
            journal.add_validation(run, record)
    later = journal.start_run("validate", [])
    journal.add_validation(later, ValidationRecord("sha256:c", "t", "static", True, {}, 900.0))
    assert journal.gate_seconds() == {"m/c": 4.0}
    run = journal.start_run("build", [])
    steps = (StepRecord(GATE_STEP, "", 6.0, cached=False),)
    journal.add_build(run, BuildRecord("m/d", "t", "r", "built", "sha256:d", steps=steps))
    record = ValidationRecord("sha256:d", "t", "static", True, {}, 5.0)
    journal.add_validation(run, record)
    assert journal.gate_seconds() == {"m/c": 4.0, "m/d": 6.0}
