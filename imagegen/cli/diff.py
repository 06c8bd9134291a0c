"""Define `imagegen diff`, which shows what differs between two images, and where the bytes are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from imagegen.cli import options

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.console.console import Console

MOST_ROWS = 20
"""The rows of one section that people see; `--all` and programs get all of them."""


@click.command("diff")
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@click.option(
    "--all", "whole", is_flag=True, help=f"also what is beyond {MOST_ROWS} rows a section"
)
@options.common
def command(before: str, after: str, whole: bool, console: Console, overlay: Path | None) -> None:
    """What differs from A to B: images of any maker, by name or id, or cells.

    A short container of each is read, which runs nothing of the image's own.
    """
    from imagegen.workflow.diff import diff

    diff(before, after, overlay, console, None if whole else MOST_ROWS)
