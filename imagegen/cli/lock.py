"""Define `imagegen lock`, which writes down exactly what the images of a matrix were made of."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from imagegen.cli import options

if TYPE_CHECKING:
    from imagegen.console.console import Console


@click.command("lock")
@options.matrix
@options.cells
@click.option("--out", type=click.Path(path_type=Path), help="another file than the matrix's own")
@options.ca_bundle
@options.common
def command(console: Console, **asked: Any) -> None:
    """Lock what is in the images of a matrix: base, packages, wheels, vendor parts.

    The cells have to be built: a lock says what was seen to work, and not what might.
    """
    from imagegen.workflow.lock import LockOptions, lock

    lock(LockOptions(**asked), console)
