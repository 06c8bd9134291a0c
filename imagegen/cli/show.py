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
@options.common
def command(cell: str, console: Console, overlay: Path | None) -> None:
    """Every component of one cell: version, origin, who led to it."""
    from imagegen.workflow.show import show

    show(cell, overlay, console)
