"""Define `imagegen render`, which writes Dockerfiles and contexts without an engine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from imagegen.cli import options

if TYPE_CHECKING:
    from imagegen.console.console import Console


@click.command("render")
@options.matrix
@options.cells
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="folder; one below it a cell"
)
@options.common
def command(
    matrix: str, cells: tuple[str, ...], out: Path, console: Console, overlay: Path | None
) -> None:
    """Write one folder a cell: Dockerfile and everything that it copies."""
    from imagegen.workflow.render import render

    recipes = render(matrix, cells, out, overlay)
    console.data(
        [
            {
                "cell": recipe.spec.cell.name,
                "image": recipe.spec.tag,
                "digest": recipe.digest,
                "folder": str(out / recipe.spec.cell.name),
            }
            for recipe in recipes
        ]
    )
    for recipe in recipes:
        console.line(f"{out / recipe.spec.cell.name}  {recipe.digest[:19]}  {recipe.spec.tag}")
