"""Define `imagegen doctor`, which shows what this machine lacks; `--fix` sets it up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from imagegen.cli import options

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.console.console import Console


@click.command("doctor")
@click.argument("image", required=False, metavar="[CELL|IMAGE]")
@click.option("--gpus", type=click.IntRange(1), help="of this node, for IMAGE  [default: all]")
@click.option("--matrix", "-m", "matrix", help="judge the disk against what this matrix needs")
@click.option("--fix", is_flag=True, help="install and start what is missing (Debian family, root)")
@options.common
def command(
    image: str | None,
    gpus: int | None,
    matrix: str | None,
    fix: bool,
    console: Console,
    overlay: Path | None,
) -> None:
    """One line each: ok, warn or fail, what was found, and what to do about it.

    With CELL or IMAGE: what this host lacks for running it, and the flags that it needs.
    """
    from imagegen.workflow.doctor import doctor, doctor_of_image

    if image is not None:
        doctor_of_image(image, overlay, console, gpus or 0)
        return

    doctor(matrix, overlay, console, fix=fix)
