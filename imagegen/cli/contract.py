"""Define `imagegen contract`, which prints what a launch has to give an image."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from imagegen.cli import options

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.console.console import Console


@click.command("contract")
@click.argument("image", metavar="CELL|IMAGE")
@options.common
def command(image: str, console: Console, overlay: Path | None) -> None:
    """What a launch has to give an image: driver, devices, rights, memory, folders, network."""
    from imagegen.workflow.contract import show_contract

    show_contract(image, overlay, console)
