"""What needs no build: the image that carries a cell's tag is of the cell's recipe as it is now.

A recipe is known here by its digest alone, so that what the last run rendered can be held against
the engine's images without rendering it again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from imagegen.engine.without_sdk import labelled_images
from imagegen.model.base import base_alias, base_of
from imagegen.model.build import BuildRecord
from imagegen.model.labels import LABEL_BASE, LABEL_RECIPE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from imagegen.engine.images.local_image import LocalImage
    from imagegen.model.recipe import Recipe


@dataclass(frozen=True)
class ExpectedImage:
    """A cell, the digest of its recipe, and the local name of the base that it stands on."""

    cell_id: str
    tag: str
    digest: str
    base: str


def expected_image(recipe: Recipe) -> ExpectedImage:
    """What of a recipe decides whether an image of it stands."""
    spec = recipe.spec
    return ExpectedImage(spec.cell.id, spec.tag, recipe.digest, base_alias(base_of(spec)))


def stands(image: LocalImage, digest: str, base_id: str) -> bool:
    """Whether an image is of this recipe, on the base that the engine has now (empty: none)."""
    same = image.labels.get(LABEL_RECIPE) == digest
    return same and base_id in ("", image.labels.get(LABEL_BASE, ""))


def record_up_to_date(cell_id: str, tag: str, digest: str, image: LocalImage) -> BuildRecord:
    """The record of a cell that nothing has to be done for."""
    return BuildRecord(
        cell_id, tag, digest, "up-to-date", image_id=image.id, size_bytes=image.size_bytes
    )


def all_standing(cells: Sequence[ExpectedImage]) -> tuple[BuildRecord, ...]:
    """A record for each cell where the engine has all their images; else nothing."""
    known = labelled_images(LABEL_RECIPE, sorted({cell.base for cell in cells}))
    if known is None:
        return ()
    images, bases = known
    by_tag = {tag: image for image in images for tag in image.tags}
    records = []
    for cell in cells:
        image = by_tag.get(cell.tag)
        base_id = bases[cell.base].id if cell.base in bases else ""
        if image is None or not stands(image, cell.digest, base_id):
            return ()
        records.append(record_up_to_date(cell.cell_id, cell.tag, cell.digest, image))
    return tuple(records)
