"""Define `imagegen publish`, which pushes validated images and then moves their tags."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from imagegen.cli import options

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.console.console import Console


@click.command("publish")
@options.matrix
@options.cells
@click.option("--to", required=True, metavar="REGISTRY/NAMESPACE", help="where the images go")
@options.common
def command(
    matrix: str, cells: tuple[str, ...], to: str, console: Console, overlay: Path | None
) -> None:
    """Publish the images of a matrix; refuses any whose bytes have no passed validation."""
    from imagegen.workflow.publish import publish

    published = publish(matrix, cells, to, overlay, console)
    console.data(
        [
            {
                "image": one.reference,
                "digest": one.digest,
                "previous": one.previous,
                "id": one.image_id,
            }
            for one in published
        ]
    )
