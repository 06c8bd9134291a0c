"""One image on the engine, read from the answers of the Engine API: that takes no SDK."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from imagegen.engine.answers import ImageAnswer, ImageRow

_UNTAGGED = "<none>:<none>"


@dataclass(frozen=True)
class LocalImage:
    """An image on the engine; `size_bytes` counts shared layers too."""

    id: str
    tags: tuple[str, ...]
    labels: Mapping[str, str] = field(hash=False)
    size_bytes: int


def listed(row: ImageRow) -> LocalImage:
    """From an entry of the Engine API's `/images/json`."""
    return _local(row, row.get("Labels"))


def inspected(row: ImageAnswer) -> LocalImage:
    """From the answer of the Engine API's `/images/NAME/json`."""
    return _local(row, (row.get("Config") or {}).get("Labels"))


def _local(row: ImageRow | ImageAnswer, labels: Mapping[str, str] | None) -> LocalImage:
    tags = tuple(tag for tag in row.get("RepoTags") or () if tag != _UNTAGGED)
    return LocalImage(row["Id"], tags, dict(labels or {}), int(row["Size"]))
