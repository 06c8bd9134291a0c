"""What an image says of itself in its labels."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from imagegen.model.labels import (
    LABEL_BASE,
    LABEL_CELL,
    LABEL_CONTRACT,
    LABEL_LOCK,
    LABEL_MATRIX,
    LABEL_PARTS,
    LABEL_RECIPE,
    LABEL_UNTIL,
    LABEL_UNVERIFIED,
    LABEL_VALIDATED,
)
from imagegen.model.part import UNVERIFIED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from imagegen.engine.builds.context import HostFile
    from imagegen.model.cell import Cell
    from imagegen.model.part import Part
    from imagegen.model.recipe import Recipe

GATED = "the tag waits for validate --static"
"""Labels are set before the gate has judged: an image that it refused keeps this one, untagged."""


def labels_for(
    recipe: Recipe, base_id: str, files: Mapping[Part, HostFile], *, gated: bool, lock: str = ""
) -> dict[str, str]:
    """The labels of one build; `files` are those of its parts, as they came to this host, `lock` is
    the digest of the lock that it is held to."""
    spec = recipe.spec
    labels = {
        LABEL_RECIPE: recipe.digest,
        LABEL_CELL: spec.cell.name,
        LABEL_MATRIX: spec.cell.matrix,
        LABEL_BASE: base_id,
        LABEL_CONTRACT: json.dumps(recipe.contract, sort_keys=True),
        LABEL_VALIDATED: GATED if gated else "not validated: --no-validate",
    }
    if recipe.parts:
        sums = {str(part): files[part].sha256 for part in recipe.parts}
        labels[LABEL_PARTS] = json.dumps(sums, sort_keys=True)
    if lock:
        labels[LABEL_LOCK] = lock
    loose = [str(part) for part in recipe.parts if part.sha256 == UNVERIFIED]
    if loose:
        labels[LABEL_UNVERIFIED] = ", ".join(loose)
    return labels


def labels_until(cell: Cell, stage: str) -> dict[str, str]:
    """The labels of an image that ends with a stage of the cell's recipe."""
    return {LABEL_UNTIL: f"{cell.id} {stage}", LABEL_CELL: cell.name, LABEL_MATRIX: cell.matrix}
