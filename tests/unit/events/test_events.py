"""Test everything that takes events with a recorded build of two cells."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cattrs.errors import ClassValidationError
from rich.console import Console as Screen

from imagegen.console.live import LiveProgress
from imagegen.console.progress import JsonProgress, PlainProgress
from imagegen.events import events
from imagegen.events.sinks import fan_out
from imagegen.events.stream import from_line, to_line
from imagegen.journal.journal import open_journal
from imagegen.journal.log_files import LogFiles
from imagegen.journal.writer import JournalWriter

if TYPE_CHECKING:
    from imagegen.events.events import Event

LINES = Path(__file__).with_name("stream.jsonl").read_text(encoding="utf-8").splitlines()
GOOD, BAD = "mini/debian12-good", "mini/debian12-bad"


@pytest.fixture(scope="module")
def stream() -> list[Event]:
    """Return the events of two cells that are built at the same time; a step of one fails."""
    return [from_line(line) for line in LINES]


def test_an_event_is_the_same_after_it_was_written_and_read(stream: list[Event]) -> None:
    assert [to_line(event) for event in stream] == LINES
    kinds = {type(event).__name__ for event in stream}
    assert kinds == {
        "CellsPlanned",
        "Predicted",
        "Note",
        "CellStarted",
        "CellLogged",
        "StepStarted",
        "StepCached",
        "StepEnded",
        "StepOutput",
        "StepFailed",
        "ImageValidated",
        "CellEnded",
    }


@pytest.mark.parametrize(
    "event",
    [
        events.StageReached("m/c", "torch", "sha256:1"),
        events.CellsQueued(("m/c", "m/d"), "a free build slot"),
        events.CellWaits("m/c", "waits: process 1 builds this cell"),
        events.CellRetried("m/c", 2, 4),
    ],
)
def test_what_the_recorded_build_did_not_have_is_written_and_read_too(event: Event) -> None:
    assert from_line(to_line(event)) == event


def test_what_is_no_event_is_refused() -> None:
    with pytest.raises((ClassValidationError, KeyError)):
        from_line('{"event":"Note","txt":"x"}')
    with pytest.raises(KeyError):
        from_line('{"event":"Nothing"}')


def test_the_journal_has_the_run_its_cells_and_its_validation(
    stream: list[Event], tmp_path: Path
) -> None:
    journal = open_journal(tmp_path / "journal.db")
    run_id = journal.start_run("build", [])
    writer = JournalWriter(journal, run_id)
    for event in stream:
        writer(event)
    built = {record.cell_id: record for record in journal.builds(run_id)}
    assert {cell: record.outcome for cell, record in built.items()} == {
        GOOD: "built",
        BAD: "failed",
    }
    assert [step.name for step in built[BAD].steps][-1].startswith("[greet 1/1] RUN echo bad")
    assert journal.done_cells(run_id) == {GOOD}
    (run,) = journal.history()
    assert run.cells == (GOOD, BAD)
    validation = journal.validation_of(built[GOOD].image_id)
    assert validation is not None
    assert (validation.tier, validation.passed) == ("static", True)


def test_every_cell_has_a_log_file_of_its_own(stream: list[Event], tmp_path: Path) -> None:
    with LogFiles(tmp_path / "logs") as log_files:
        for event in stream:
            log_files(event)
    good = (tmp_path / "logs/mini-debian12-good.log").read_text().splitlines()
    bad = (tmp_path / "logs/mini-debian12-bad.log").read_text().splitlines()
    assert good[0] == f"{GOOD}: no image is tagged `imagegen/mini:debian12-good`"
    assert "  good" in good
    assert any(line.startswith("= cached: [python 1/1]") for line in good)
    assert good[-1].startswith("built sha256:")
    assert bad[-1] == "failed: command"
    (failure,) = (line for line in bad if line.startswith("! "))
    assert failure.startswith("! [greet 1/1] RUN echo bad && test bad = good: executor failed")
    assert failure.endswith("exit code: 1")


def test_a_log_file_has_every_line_at_once(tmp_path: Path) -> None:
    with LogFiles(tmp_path) as log_files:
        log_files(events.CellStarted("m/c", "it is new"))
        log_files(events.StepOutput("m/c", "hello"))
        assert (tmp_path / "m-c.log").read_text() == "m/c: it is new\n  hello\n"
        log_files(events.StepOutput("m/other", "a cell that never began has no file"))
    assert [path.name for path in tmp_path.iterdir()] == ["m-c.log"]


def test_plain_lines_say_each_step_and_each_end(stream: list[Event]) -> None:
    lines: list[str] = []
    show = PlainProgress(lines.append, [GOOD, BAD], lambda: 0.0)
    for event in stream:
        show(event)
    assert lines[:2] == [
        "nobody knows the size of greet: it counts as nothing",
        "2 of 2 images to build, 4 at a time",
    ]
    said = [line.split("s  ", 1)[1] for line in lines[2:]]
    step = "2/7 47%  [greet 1/1] RUN echo bad && test bad = good  (about 18s left)"
    assert f"{BAD}   {step}" in said
    assert f"{BAD}   failed: command" in said
    assert f"{GOOD}  validate --static" in said
    assert said[-1] == f"{GOOD}  built 56cc5257d882 in 9 s, 3 of 7 steps cached"


def test_json_lines_are_steps_logs_and_ends(stream: list[Event]) -> None:
    notes: list[str] = []
    rows: list[dict[str, object]] = []
    show = JsonProgress(
        notes.append, lambda kind, **row: rows.append({"event": kind, **row}), lambda: 0.0
    )
    for event in stream:
        show(event)
    assert len(notes) == 2
    assert {row["event"] for row in rows} == {"step", "log", "done"}
    ends = [(row["cell"], row["outcome"]) for row in rows if row["event"] == "done"]
    assert ends == [(BAD, "failed"), (GOOD, "built")]
    step = next(row for row in rows if row.get("component") == "greet")
    assert (step["step"], step["steps"], step["left_seconds"]) == (2, 7, 17.6)
    assert (step["share"], step["late"], step["layer_bytes"]) == (0.405, [], 0)
    assert [(row["steps"], row["cached"]) for row in rows if row["event"] == "done"] == [
        (2, 1),
        (7, 3),
    ]
    json.dumps(rows)


def test_the_live_table_has_a_row_for_each_cell_that_builds(stream: list[Event]) -> None:
    printed = io.StringIO()
    screen = Screen(file=printed, width=120)
    show = LiveProgress([GOOD, BAD], screen)
    ended = next(i for i, event in enumerate(stream) if isinstance(event, events.CellEnded))
    for event in stream[:ended]:
        show(event)
    screen.print(show.render())
    names = (GOOD.removeprefix("mini/"), BAD.removeprefix("mini/"))
    assert all(text in printed.getvalue() for text in (*names, "greet", "2/7", "left"))
    printed.truncate(0)
    for event in stream[ended:]:
        show(event)
    assert "failed: command" in printed.getvalue()
    printed.truncate(0)
    screen.print(show.render())
    assert printed.getvalue().strip("\0\n") == ""


def test_all_subscribers_get_each_event_in_order(stream: list[Event]) -> None:
    one: list[Event] = []
    two: list[Event] = []
    emit = fan_out(one.append, two.append)
    for event in stream:
        emit(event)
    assert one == two == stream
