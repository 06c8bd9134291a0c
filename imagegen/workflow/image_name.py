"""Find the image that a user names: by its name on the engine, or as a cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imagegen.engine.images import local_images
from imagegen.errors import NothingSelectedError
from imagegen.workflow.project import Project

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.engine.client import Engine
    from imagegen.engine.images.local_image import LocalImage


def image_of(engine: Engine, name: str, overlay: Path | None) -> LocalImage:
    """Find an image by its reference or id, else as the image of the one cell of that name.

    Raises NothingSelectedError where there is neither, or the cell is not built; EngineError.
    """
    found = local_images.find(engine, name)
    if found is not None:
        return found
    try:
        _, spec = Project(overlay).cell(name)
    except NothingSelectedError as error:
        lines = [line for problem in error.problems for line in (problem.text, *problem.evidence)]
        text = f"`{name}` is neither an image on this engine nor one cell"
        raise NothingSelectedError.of(text, evidence=lines, hint="imagegen list") from None
    found = local_images.find(engine, spec.tag)
    if found is None:
        hint = f"imagegen build --matrix {spec.cell.matrix} {spec.cell.name}"
        text = f"`{spec.cell.id}` has no image `{spec.tag}` on this engine"
        raise NothingSelectedError.of(text, hint=hint)
    return found
