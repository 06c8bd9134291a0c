"""`imagegen history`: the last runs, or one of them with its cells and steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from imagegen.cli import options
from imagegen.errors import NothingSelectedError

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.console.console import Console
    from imagegen.journal.journal import Journal


@click.command("history")
@click.argument("run", type=int, required=False)
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="runs")
@options.common
def command(run: int | None, limit: int, console: Console, overlay: Path | None) -> None:
    """What was built, validated and published, the latest run first; or the cells of one RUN."""
    from imagegen.journal.journal import open_journal

    del overlay
    if run is None:
        _runs(open_journal(), limit, console)
    else:
        _one(open_journal(), run, console)


def _runs(book: Journal, limit: int, console: Console) -> None:
    from imagegen.builder.resume import state_of
    from imagegen.config.state import state_folder

    runs = book.history(limit)
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


def _one(book: Journal, run: int, console: Console) -> None:
    """The cells of a run, each with the steps that took longest or made most bytes."""
    from dataclasses import asdict

    from imagegen.config.state import state_folder
    from imagegen.inspection.sbom_files import kept_sboms
    from imagegen.text import human_bytes, human_seconds

    records = book.builds(run)
    if not records:
        text = f"run {run} built nothing, or there is none"
        raise NothingSelectedError.of(text, hint="imagegen history")
    state = state_folder()
    bills = {one.image_id: [*map(str, kept_sboms(one.image_id, state))] for one in records}
    console.data([{**asdict(record), "sbom": bills[record.image_id]} for record in records])
    for record in records:
        console.line(
            f"{record.cell_id}  {record.outcome}  {human_seconds(record.seconds)}  "
            f"{human_bytes(record.size_bytes)}  {record.image_id[7:19]}  {record.cause}".rstrip()
        )
        console.table(
            ("  step", "took", "size"),
            [
                (
                    f"  {step.name.split(']')[0]}] {step.release}",
                    "cached" if step.cached else human_seconds(step.seconds),
                    human_bytes(step.size_bytes) if step.size_bytes else "-",
                )
                for step in record.steps
            ],
        )
        for path in bills[record.image_id]:
            console.line(f"  sbom {path}")
