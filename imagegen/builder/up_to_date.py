"""Find which cells are up to date, and why the others are stale.

A cell is up to date where the image that has its tag was built from its present recipe. A recipe is
identified by its digest, so that the recipes of the last run can be compared with the engine's
images without rendering them again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from imagegen.engine.images import local_images as images
from imagegen.engine.without_sdk import labelled_images
from imagegen.model.build import BuildRecord
from imagegen.model.image import base_alias, base_of
from imagegen.model.labels import LABEL_BASE, LABEL_LOCK, LABEL_RECIPE, labelled_inputs
from imagegen.planner.chain import chain_of_recipe, spread
from imagegen.renderer.provenance import changes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from imagegen.engine.client import Engine
    from imagegen.engine.images.local_image import LocalImage
    from imagegen.model.recipe import Recipe
    from imagegen.model.release import OsRelease
    from imagegen.planner.chain import Chain
    from imagegen.sources.locked_build import LockedBuild


@dataclass(frozen=True)
class ExpectedImage:
    """Name a cell, the digest of its recipe, and the local name of its base image."""

    cell_id: str
    tag: str
    digest: str
    base: str


def expected_image(recipe: Recipe) -> ExpectedImage:
    """Extract from a recipe what decides whether an image is up to date."""
    spec = recipe.spec
    return ExpectedImage(spec.cell.id, spec.tag, recipe.digest, base_alias(base_of(spec)))


def is_of_recipe(image: LocalImage, digest: str, base_id: str) -> bool:
    """Return whether an image was built from this recipe, on the engine's present base image.

    `base_id` is empty where the engine does not have the base image; then the base is not compared.
    """
    same = image.labels.get(LABEL_RECIPE) == digest
    return same and base_id in ("", image.labels.get(LABEL_BASE, ""))


def record_up_to_date(cell_id: str, tag: str, digest: str, image: LocalImage) -> BuildRecord:
    """Make the record of a cell that is up to date."""
    return BuildRecord(
        cell_id, tag, digest, "up-to-date", image_id=image.id, size_bytes=image.size_bytes
    )


def records_if_unchanged(cells: Sequence[ExpectedImage]) -> tuple[BuildRecord, ...]:
    """Make a record for each cell if all are up to date on the engine; else return nothing."""
    known = labelled_images(LABEL_RECIPE, sorted({cell.base for cell in cells}))
    if known is None:
        return ()
    images, bases = known
    by_tag = {tag: image for image in images for tag in image.tags}
    records = []
    for cell in cells:
        image = by_tag.get(cell.tag)
        base_id = bases[cell.base].id if cell.base in bases else ""
        if image is None or not is_of_recipe(image, cell.digest, base_id):
            return ()
        records.append(record_up_to_date(cell.cell_id, cell.tag, cell.digest, image))
    return tuple(records)


@dataclass(frozen=True)
class Staleness:
    """Say why a cell has to be built; an empty `why` means that its image is up to date.

    `changes` are all inputs that differ from those that the labels of the image name.
    """

    recipe: Recipe
    why: str
    image: LocalImage | None
    changes: tuple[str, ...] = ()


def staleness(
    recipe: Recipe, known: Sequence[LocalImage], base_id: str, lock: str = ""
) -> Staleness:
    """Compare a recipe with the image that has its tag on the engine now.

    `lock` is the digest of the lock that the build must follow; empty where there is none.
    """
    tag = recipe.spec.tag
    image = next((image for image in known if tag in image.tags), None)
    if image is None:
        return Staleness(recipe, f"no image is tagged `{tag}`", None)
    if not is_of_recipe(image, recipe.digest, base_id):
        return _changed(recipe, image, _moved(recipe, image, base_id))
    if lock and image.labels.get(LABEL_LOCK) != lock:
        return Staleness(recipe, "it was not built from this lock", image)
    return Staleness(recipe, "", image)


def _moved(recipe: Recipe, image: LocalImage, base_id: str) -> list[str]:
    """Describe the change of the base image, if the engine now has another one."""
    before = image.labels.get(LABEL_BASE, "")
    if not base_id or before == base_id:
        return []
    old, new = (one.removeprefix("sha256:")[:12] or "unknown" for one in (before, base_id))
    return [f"base image {base_of(recipe.spec).id} {old} -> {new}"]


def _changed(recipe: Recipe, image: LocalImage, moved: list[str]) -> Staleness:
    if image.labels.get(LABEL_RECIPE) == recipe.digest:
        why = f"its base image {base_of(recipe.spec).id} changed"
        return Staleness(recipe, why, image, tuple(moved))
    before = labelled_inputs(image.labels)
    found = (changes(before, recipe) if before else []) + moved
    more = f", and {len(found) - 1} more" if len(found) > 1 else ""
    why = "its recipe changed" + (f": {found[0]}{more}" if found else "")
    return Staleness(recipe, why, image, tuple(found))


def find_stale(
    engine: Engine, recipes: Sequence[Recipe], *, force: bool, lock: LockedBuild | None = None
) -> list[Staleness]:
    """Find which cells have to be built, with one list call and one call for each base."""
    known = images.list_labelled(engine, LABEL_RECIPE)
    base_ids = {base.id: _base_id(engine, base) for base in (base_of(r.spec) for r in recipes)}
    locks = {os_id: lock.digest(os_id) if lock else "" for os_id in base_ids}
    found = [
        staleness(recipe, known, base_ids[base_of(recipe.spec).id], locks[base_of(recipe.spec).id])
        for recipe in recipes
    ]
    if force:
        found = [Staleness(s.recipe, s.why or "--force", s.image) for s in found]
    return found


def _base_id(engine: Engine, os: OsRelease) -> str:
    base = images.find(engine, base_alias(os))
    return base.id if base else ""


def up_to_date(found: Staleness) -> BuildRecord:
    """Make the record of a cell that is up to date."""
    spec = found.recipe.spec
    assert found.image is not None
    return record_up_to_date(spec.cell.id, spec.tag, found.recipe.digest, found.image)


def in_turns(stale: Sequence[Staleness]) -> list[Staleness]:
    """Order cells so that neighbours share as few layers as possible.

    They take turns by base first, then by lowest layers, so that cells that are built at the same
    time seldom wait for the same layer.
    """

    def chain(item: Staleness) -> Chain:
        return (("base", base_of(item.recipe.spec).id), *chain_of_recipe(item.recipe))

    return spread(stale, chain)
