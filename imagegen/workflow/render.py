"""`imagegen render` writes Dockerfiles and contexts as files, without an engine."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from imagegen.errors import RenderError
from imagegen.workflow.project import Project

if TYPE_CHECKING:
    from collections.abc import Sequence

    from imagegen.model.recipe import Recipe


def render(matrix: str, cells: Sequence[str], out: Path, overlay: Path | None) -> list[Recipe]:
    """Write a folder below `out` for each cell; return the recipes.

    Raises RenderError where a template fails or a folder cannot be written.
    """
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
    return recipes


def _write(recipe: Recipe, folder: Path) -> None:
    """Write to a temporary folder, then exchange it: a failure leaves the old folder whole."""
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
