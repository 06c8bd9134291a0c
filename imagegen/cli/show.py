"""Define `imagegen show`, which shows the components of a cell and where each comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from imagegen.cli import options

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.console.console import Console


@click.command("show")
@click.argument("cell")
@click.option("--why", is_flag=True, help="also who asked for what, and where each row stands")
@options.common
def command(cell: str, why: bool, console: Console, overlay: Path | None) -> None:
    """Every component of one cell: its version, and where it comes from."""
    from imagegen.workflow.show import show

    show(cell, overlay, console, why=why)
