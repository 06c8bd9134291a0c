"""Which of several releases comes first where nothing else decides: the newest."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from imagegen.model import constraint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from imagegen.model.catalog import Release


def in_order(rows: Sequence[Release], by_name: bool) -> tuple[Release, ...]:
    """Best first: by rank, then the newest; names that are no versions as their file has them."""
    if by_name:
        return tuple(rows)
    newest = sorted(rows, key=lambda row: order_key(row.version, row.variant), reverse=True)
    return tuple(sorted(newest, key=lambda row: row.rank))


def order_key(version: str, variant: str = "") -> tuple[object, ...]:
    """Newest last; of one version the build for the newest CUDA, then the plain one, is last."""
    key = constraint.version_key(version)
    build = key.local or variant
    found = re.search(r"(?:cu|cuda)(\d+)\.?(\d+)$", build)
    if found is None:
        return key.release, key.is_postrelease, (0, 0) if build == "cpu" else (0, 1)
    digits = "".join(found.groups())
    return key.release, key.is_postrelease, (int(digits[:-1]), int(digits[-1]))
