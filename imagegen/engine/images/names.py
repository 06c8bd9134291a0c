"""What images are called on an engine and what it says of them: no SDK is needed to know that."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from imagegen.model.catalog import OsRelease

_UNTAGGED = "<none>:<none>"


@dataclass(frozen=True)
class LocalImage:
    """An image on the engine; `size_bytes` counts shared layers too."""

    id: str
    tags: tuple[str, ...]
    labels: Mapping[str, str] = field(hash=False)
    size_bytes: int


def listed(row: Mapping[str, Any]) -> LocalImage:
    """From an entry of the Engine API's `/images/json`."""
    return _local(row, row.get("Labels"))


def inspected(row: Mapping[str, Any]) -> LocalImage:
    """From the answer of the Engine API's `/images/NAME/json`."""
    return _local(row, (row.get("Config") or {}).get("Labels"))


def alias(os: OsRelease) -> str:
    """The local name that Dockerfiles stand on, whatever the base came from."""
    return f"imagegen/base:{os.id}"


def _local(row: Mapping[str, Any], labels: Mapping[str, str] | None) -> LocalImage:
    tags = tuple(tag for tag in row.get("RepoTags") or () if tag != _UNTAGGED)
    return LocalImage(row["Id"], tags, dict(labels or {}), int(row["Size"]))
