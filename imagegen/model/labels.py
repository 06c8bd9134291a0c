"""Define the names of the labels that imagegen writes on images."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

LABEL_RECIPE = "io.imagegen.recipe"

LABEL_CELL = "io.imagegen.cell"

LABEL_MATRIX = "io.imagegen.matrix"

LABEL_BASE = "org.opencontainers.image.base.digest"

LABEL_CONTRACT = "io.imagegen.contract"

LABEL_VALIDATED = "io.imagegen.validated"

LABEL_INPUTS = "io.imagegen.inputs"
"""A JSON map of what the image was made from, for `docker inspect`."""

LABEL_LOCK = "io.imagegen.lock"
"""The digest of the lock of its system, on an image that was built with `--locked`."""

LABEL_PARTS = "io.imagegen.parts"
"""The sha256 of every vendor part and tarball that the build mounted, as JSON."""

LABEL_UNTIL = "io.imagegen.until"
"""On an image that ends in the middle of a recipe: `cell stage`. It belongs to no cell."""

LABEL_UNVERIFIED = "io.imagegen.unverified"
"""The parts whose rows have no sha256, taken with `--allow-unverified`."""

LABEL_HOW = "io.imagegen.base"
"""On an image whose base was bootstrapped here; not on an image whose base is from a registry."""

LABEL_PROCESS = "io.imagegen.process"
"""On a container: the process that started it."""

LABEL_TITLE = "org.opencontainers.image.title"
"""The tag that an image was built for."""


def labelled_inputs(labels: Mapping[str, str]) -> dict[str, str]:
    """Read from its labels what an image was made from; empty for an image without that label."""
    try:
        found = json.loads(labels.get(LABEL_INPUTS, "{}"))
    except ValueError:
        return {}
    return {str(k): str(v) for k, v in found.items()} if isinstance(found, dict) else {}
