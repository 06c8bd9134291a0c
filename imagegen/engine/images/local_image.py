"""Describe one image on the engine, from answers of the Engine API, without the SDK."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from imagegen.engine.answers import ImageAnswer, ImageRow

_UNTAGGED = "<none>:<none>"


@dataclass(frozen=True)
class LocalImage:
    """Describe an image on the engine; `size_bytes` includes layers that it shares."""

    id: str
    tags: tuple[str, ...]
    labels: Mapping[str, str] = field(hash=False)
    size_bytes: int


def listed(row: ImageRow) -> LocalImage:
    """Read an image from an entry of the Engine API's `/images/json`."""
    return _local(row, row.get("Labels"))


def inspected(row: ImageAnswer) -> LocalImage:
    """Read an image from the answer of the Engine API's `/images/NAME/json`."""
    return _local(row, (row.get("Config") or {}).get("Labels"))


def _local(row: ImageRow | ImageAnswer, labels: Mapping[str, str] | None) -> LocalImage:
    tags = tuple(tag for tag in row.get("RepoTags") or () if tag != _UNTAGGED)
    return LocalImage(row["Id"], tags, dict(labels or {}), int(row["Size"]))
