"""Define `imagegen history`, which shows the last runs, or one run with its cells and steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from imagegen.cli import options

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.console.console import Console

MOST = 2**62
"""The largest number that a table of the journal can have, nearly."""


@click.command("history")
@click.argument("run", type=click.IntRange(1, MOST), required=False)
@click.option("--limit", type=click.IntRange(1, MOST), default=20, show_default=True, help="runs")
@options.common
def command(run: int | None, limit: int, console: Console, overlay: Path | None) -> None:
    """What was built, validated and published, the latest run first; or the cells of one RUN."""
    from imagegen.workflow.history import show_run, show_runs

    del overlay
    if run is None:
        show_runs(limit, console)
    else:
        show_run(run, console)
