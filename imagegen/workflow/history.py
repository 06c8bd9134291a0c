"""`imagegen history` shows the last runs, or the cells of one run with their steps."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from imagegen.config.state import state_folder
from imagegen.errors import NothingSelectedError
from imagegen.inspection.sbom_files import kept_sboms
from imagegen.journal.reading import reading_journal
from imagegen.journal.resume import state_of
from imagegen.text import human_bytes, human_seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from imagegen.console.console import Console
    from imagegen.model.build import BuildRecord, StepRecord


def show_runs(limit: int, console: Console) -> None:
    """Show the last runs, the latest first."""
    runs = reading_journal().history(limit)
    states = {run.id: state_of(run, state_folder()) for run in runs}
    console.data([{**vars(run), "state": states[run.id]} for run in runs])
    console.table(
        ("run", "verb", "started", "exit", "outcomes"),
        [
            (
                str(run.id),
                run.verb,
                run.started,
                states[run.id],
                ", ".join(f"{count} {name}" for name, count in run.outcomes.items()),
            )
            for run in runs
        ],
    )


def show_run(run_id: int, console: Console) -> None:
    """Show the cells of a run, each with the steps that took longest or made the most bytes.

    Raises NothingSelectedError where that run built nothing.
    """
    records = reading_journal().builds(run_id)
    if not records:
        text = f"run {run_id} built nothing, or there is none"
        raise NothingSelectedError.of(text, hint="imagegen history")
    state = state_folder()
    bills = {one.image_id: [*map(str, kept_sboms(one.image_id, state))] for one in records}
    console.data([{**asdict(record), "sbom": bills[record.image_id]} for record in records])
    for record in records:
        console.line(_line(record))
        console.table(("  step", "took", "size"), _step_rows(record.steps))
        for path in bills[record.image_id]:
            console.line(f"  sbom {path}")


def _line(record: BuildRecord) -> str:
    return (
        f"{record.cell_id}  {record.outcome}  {human_seconds(record.seconds)}  "
        f"{human_bytes(record.size_bytes)}  {record.image_id[7:19]}  {record.cause}".rstrip()
    )


def _short(step: str) -> str:
    """Return `[torch 1/2]` of a step of a Dockerfile, the whole name of another step."""
    return step.split("]")[0] + "]" if step.startswith("[") else step


def _step_rows(steps: Sequence[StepRecord]) -> list[tuple[str, str, str]]:
    return [
        (
            f"  {_short(step.name)} {step.release}".rstrip(),
            "cached" if step.cached else human_seconds(step.seconds),
            human_bytes(step.size_bytes) if step.size_bytes else "-",
        )
        for step in steps
    ]
