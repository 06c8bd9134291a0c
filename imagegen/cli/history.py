"""Define `imagegen history`, which shows the last runs, or one run with its cells and steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from imagegen.cli import options

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.console.console import Console


@click.command("history")
@click.argument("run", type=int, required=False)
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="runs")
@options.common
def command(run: int | None, limit: int, console: Console, overlay: Path | None) -> None:
    """What was built, validated and published, the latest run first; or the cells of one RUN."""
    from imagegen.workflow.history import show_run, show_runs

    del overlay
    if run is None:
        show_runs(limit, console)
    else:
        show_run(run, console)
