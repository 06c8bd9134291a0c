"""Which cells have to be built, and why: a recipe against the image that carries its tag now."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from imagegen.engine import bases, images
from imagegen.model import LABEL_BASE, LABEL_RECIPE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from imagegen.engine.client import Engine
    from imagegen.engine.images import LocalImage
    from imagegen.model import OsRelease, Recipe


@dataclass(frozen=True)
class Staleness:
    """Why a cell has to be built; empty `why` means its image is up to date."""

    recipe: Recipe
    why: str
    image: LocalImage | None


def staleness(recipe: Recipe, known: Sequence[LocalImage], base_id: str) -> Staleness:
    """Compare a recipe with the image that carries its tag on the engine now."""
    tag = recipe.spec.tag
    image = next((image for image in known if tag in image.tags), None)
    if image is None:
        return Staleness(recipe, f"no image is tagged `{tag}`", None)
    if image.labels.get(LABEL_RECIPE) != recipe.digest:
        return Staleness(recipe, "its recipe changed", image)
    if base_id and image.labels.get(LABEL_BASE) != base_id:
        return Staleness(recipe, f"its base image {recipe.spec.os.id} changed", image)
    return Staleness(recipe, "", image)


def find_stale(engine: Engine, recipes: Sequence[Recipe], *, force: bool) -> list[Staleness]:
    """What has to be built, from one list call and one look at each base."""
    known = images.list_labelled(engine, LABEL_RECIPE)
    base_ids = {r.spec.os.id: _base_id(engine, r.spec.os) for r in recipes}
    found = [staleness(recipe, known, base_ids[recipe.spec.os.id]) for recipe in recipes]
    if force:
        found = [Staleness(s.recipe, s.why or "--force", s.image) for s in found]
    return found


def _base_id(engine: Engine, os: OsRelease) -> str:
    base = images.find(engine, bases.alias(os))
    return base.id if base else ""


def spread(stale: Sequence[Staleness]) -> list[Staleness]:
    """One cell of each OS first: cells of one OS wait for the same layers, others do not."""
    nth: Counter[str] = Counter()
    turns = []
    for item in stale:
        turns.append(nth[item.recipe.spec.os.id])
        nth[item.recipe.spec.os.id] += 1
    return [item for _, item in sorted(zip(turns, stale, strict=True), key=lambda pair: pair[0])]
