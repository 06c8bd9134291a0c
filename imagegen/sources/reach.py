"""Find the cells that cannot be built because their base or a part is not available."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from imagegen.engine.images import bases
from imagegen.errors import Problem
from imagegen.model.image import base_of
from imagegen.sources.mirrors import rewrite_image
from imagegen.sources.supply import missing_upstream

if TYPE_CHECKING:
    from collections.abc import Sequence

    from imagegen.engine.client import Engine
    from imagegen.model.recipe import Recipe
    from imagegen.sources.supply import Store


def out_of_reach(engine: Engine, recipes: Sequence[Recipe], store: Store) -> dict[str, Problem]:
    """Map the id of each such cell to its problem; all servers are asked at the same time."""
    wanted = {(base_of(one.spec), one.spec.cell.base) for one in recipes}
    with ThreadPoolExecutor(max(1, len(wanted))) as pool:
        asked = {
            (base.id, mode): pool.submit(
                bases.why_no_base, engine, base, mode, rewrite_image(base.image, store.mirrors)
            )
            for base, mode in wanted
        }
        parts = missing_upstream([part for one in recipes for part in one.parts], store)
    found: dict[str, Problem] = {}
    for recipe in recipes:
        spec, base = recipe.spec, base_of(recipe.spec)
        why = asked[base.id, spec.cell.base].result()
        missing = [parts[part] for part in recipe.parts if part in parts]
        if why:
            found[spec.cell.id] = Problem(f"its base `{base.image}` cannot be had: {why}")
        elif missing:
            found[spec.cell.id] = missing[0]
    return found
