"""`imagegen history`: the last runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from imagegen.cli import options

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.console import Console


@click.command("history")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="runs")
@options.common
def command(limit: int, console: Console, overlay: Path | None) -> None:
    """What was built, validated and published, the latest run first."""
    from imagegen.journal import open_journal

    del overlay
    runs = open_journal().history(limit)
    console.data([vars(run) for run in runs])
    console.table(
        ("run", "verb", "started", "exit", "outcomes"),
        [
            (
                str(run.id),
                run.verb,
                run.started,
                "running" if run.exit_code is None else str(run.exit_code),
                ", ".join(f"{count} {name}" for name, count in run.outcomes.items()),
            )
            for run in runs
        ],
    )
