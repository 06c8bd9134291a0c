"""What builds leave behind on an engine: images without a tag, stopped containers, old cache."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from docker.errors import APIError

from imagegen.engine.client import Engine, engine_errors
from imagegen.model import LABEL_MATRIX

if TYPE_CHECKING:
    from collections.abc import Mapping

DF_SECONDS = 600
"""The engine walks all layers to count what images share."""

_OURS = re.compile(r"^/imagegen-[0-9a-f]{12}$")
_STOPPED = ("created", "exited", "dead")


@dataclass(frozen=True)
class Kept:
    """An image of imagegen's; `own_bytes` are those that no other image shares."""

    id: str
    tags: tuple[str, ...]
    labels: Mapping[str, str] = field(hash=False)
    own_bytes: int


@dataclass(frozen=True)
class Inventory:
    """What is on the engine: our images, image ids in use, our stopped containers, the cache."""

    images: tuple[Kept, ...]
    used: frozenset[str]
    containers: tuple[str, ...]
    cache: tuple[Mapping[str, Any], ...]


def inventory(engine: Engine) -> Inventory:
    """One look at everything. Raises EngineError."""
    with engine_errors("count what it keeps"), engine.fresh(timeout=DF_SECONDS) as api:
        found = api.df()
        containers = api.containers(all=True)
    rows = [row for row in found["Images"] or () if LABEL_MATRIX in (row.get("Labels") or {})]
    ours = [one for one in containers if any(map(_OURS.match, one.get("Names") or ()))]
    return Inventory(
        tuple(_kept(row) for row in rows),
        frozenset(one["ImageID"] for one in containers if one not in ours or _runs(one)),
        tuple(one["Names"][0][1:] for one in ours if not _runs(one)),
        tuple(found.get("BuildCache") or ()),
    )


def _runs(container: Mapping[str, Any]) -> bool:
    return container.get("State") not in _STOPPED


def _kept(row: Mapping[str, Any]) -> Kept:
    tags = tuple(tag for tag in row.get("RepoTags") or () if tag != "<none>:<none>")
    shared = max(int(row.get("SharedSize", 0)), 0)
    return Kept(row["Id"], tags, dict(row["Labels"]), max(int(row["Size"]) - shared, 0))


def old_cache_bytes(cache: tuple[Mapping[str, Any], ...], days: int, now: datetime) -> int:
    """Bytes of cache entries that no build has used for so many days, and that no image is."""
    before = now - timedelta(days=days)
    return sum(
        int(one.get("Size", 0))
        for one in cache
        if not one.get("InUse") and not one.get("Shared") and _last_used(one) < before
    )


def _last_used(entry: Mapping[str, Any]) -> datetime:
    text = entry.get("LastUsedAt") or entry.get("CreatedAt") or ""
    try:
        # The engine writes nanoseconds, which datetime does not read.
        return datetime.fromisoformat(text[:19]).replace(tzinfo=timezone.utc)
    except ValueError:
        return datetime.now(timezone.utc)


def prune_cache(engine: Engine, days: int) -> int:
    """Remove cache that no build has used for so many days; the bytes that came free."""
    with engine_errors("prune its build cache"), engine.fresh(timeout=DF_SECONDS) as api:
        filters = json.dumps({"until": [f"{days * 24}h"]})
        answer = api.post(engine.url("/build/prune"), params={"filters": filters})
        answer.raise_for_status()
        return int(answer.json().get("SpaceReclaimed") or 0)


def remove_image(engine: Engine, image_id: str) -> bool:
    """Remove an image, unless it got a tag, a child or a container since it was looked at."""
    with engine_errors(f"remove {image_id}"):
        try:
            engine.api.remove_image(image_id)
        except APIError as error:
            if error.status_code in (404, 409):
                return False
            raise
    return True


def remove_container(engine: Engine, name: str) -> bool:
    """Remove a container, unless it runs again."""
    with engine_errors(f"remove {name}"):
        try:
            engine.api.remove_container(name)
        except APIError as error:
            if error.status_code in (404, 409):
                return False
            raise
    return True
