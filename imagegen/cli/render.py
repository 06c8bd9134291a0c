"""`imagegen render`: Dockerfiles and contexts as files, without an engine."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from imagegen.cli import options
from imagegen.errors import RenderError

if TYPE_CHECKING:
    from imagegen.console.console import Console
    from imagegen.model.recipe import Recipe


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
    from imagegen.workflow.project import Project

    project = Project(overlay)
    recipes = project.recipes(project.family(matrix), cells)
    try:
        out.mkdir(parents=True, exist_ok=True)
        for recipe in recipes:
            _write(recipe, out / recipe.spec.cell.name)
    except OSError as error:
        raise RenderError.of(
            f"cannot write below `{out}`", evidence=[str(error)], hint="choose another `--out`"
        ) from None
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


def _write(recipe: Recipe, folder: Path) -> None:
    """Write beside the folder and swap: a failed render leaves the old one whole."""
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".render-") as temporary:
        fresh = Path(temporary, "context")
        fresh.mkdir()
        (fresh / "Dockerfile").write_text(recipe.dockerfile, encoding="utf-8")
        for file in recipe.files:
            path = fresh / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.data)
            path.chmod(file.mode)
        if folder.exists():
            shutil.move(folder, Path(temporary, "old"))
        shutil.move(fresh, folder)
