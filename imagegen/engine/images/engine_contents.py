"""List what an engine keeps for this tool, and remove it: images, containers, build cache."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, cast

from imagegen.engine import sdk
from imagegen.engine.api import checked
from imagegen.engine.client import Engine, engine_errors
from imagegen.engine.containers.owner import is_left, is_ours, runs
from imagegen.engine.images import local_images
from imagegen.errors import EngineError
from imagegen.model.labels import LABEL_INPUTS, LABEL_MATRIX, LABEL_UNTIL

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from imagegen.engine.answers import CacheEntry, DiskAnswer, ImageRow, PruneAnswer

DF_SECONDS = 600
"""The engine reads all files that it has not counted before."""

_CLOSING = re.compile(rf"LABEL\s+\"?({re.escape(LABEL_INPUTS)}|{re.escape(LABEL_UNTIL)})\"?=")
"""The last instruction of all that imagegen builds; nothing else writes it."""


@dataclass(frozen=True)
class KeptImage:
    """Describe an image that imagegen made.

    `own_bytes` are the bytes that no other image shares; they are counted only for images without a
    tag.
    """

    id: str
    tags: tuple[str, ...]
    labels: Mapping[str, str] = field(hash=False)
    own_bytes: int = 0


@dataclass(frozen=True)
class EngineContents:
    """Hold what is on the engine.

    `images` are those of imagegen, `used` the ids of images that containers use, `containers` the
    names of imagegen's containers that are of no use, `there` the ids of all images on the engine.
    `running` are those of the containers that still run, because the run that started them was
    killed.
    """

    images: tuple[KeptImage, ...]
    used: frozenset[str]
    containers: tuple[str, ...]
    there: frozenset[str] = frozenset()
    running: frozenset[str] = frozenset()


def engine_contents(engine: Engine, writing: Collection[str]) -> EngineContents:
    """List images and containers on the engine.

    `writing` are the instructions that make a layer. The shared bytes are counted here, because the
    engine's own count reads the files of every container first. Raises EngineError.
    """
    with engine_errors("list what it keeps"):
        rows = engine.api.images(all=True)
        containers = engine.api.containers(all=True)
    labelled = [_kept(row) for row in rows if LABEL_MATRIX in (row.get("Labels") or {})]
    kept = [one for one in labelled if one.tags or not is_derived(_history(engine, one.id))]
    loose = [one.id for one in kept if not one.tags]
    own = own_bytes(engine, [row["Id"] for row in rows], loose, writing)
    left = [one for one in containers if is_ours(one) and is_left(one)]
    return EngineContents(
        tuple(replace(one, own_bytes=own.get(one.id, 0)) for one in kept),
        frozenset(one["ImageID"] for one in containers if one not in left),
        tuple(one["Names"][0][1:] for one in left),
        frozenset(row["Id"] for row in rows),
        frozenset(one["Names"][0][1:] for one in left if runs(one)),
    )


def is_derived(history: Sequence[tuple[str, int]]) -> bool:
    """Return whether an image was made from one of imagegen's by something else.

    It has the labels of that image, and its history goes on behind the last instruction that
    imagegen writes. `docker commit` and each instruction of a Dockerfile adds to the history.
    """
    closing = [bool(_CLOSING.search(text)) for text, _ in history]
    return closing.count(True) != 1 or not closing[-1]


def _kept(row: ImageRow) -> KeptImage:
    tags = tuple(tag for tag in row.get("RepoTags") or () if tag != "<none>:<none>")
    return KeptImage(row["Id"], tags, dict(row.get("Labels") or {}))


def own_bytes(
    engine: Engine, every: Sequence[str], asked: Sequence[str], writing: Collection[str]
) -> dict[str, int]:
    """Map each image id in `asked` to the bytes of its layers that no other image has."""
    if not asked:
        return {}
    chains = {one: _layers(engine, one) for one in every}
    found = {}
    for image in asked:
        others = [chain for other, chain in chains.items() if other != image]
        shared = max((_in_common(chains[image], chain) for chain in others), default=0)
        found[image] = _top_bytes(engine, image, len(chains[image]) - shared, writing)
    return found


def _history(engine: Engine, image: str) -> tuple[tuple[str, int], ...]:
    """List what made an image; empty where it was removed meanwhile."""
    try:
        return local_images.history(engine, image)
    except EngineError:
        return ()


def _layers(engine: Engine, image: str) -> tuple[str, ...]:
    """List the layers of an image, the lowest first; empty where it was removed meanwhile."""
    try:
        return tuple(local_images.inspect(engine, image)["RootFS"].get("Layers") or ())
    except EngineError:
        return ()


def _in_common(one: Sequence[str], other: Sequence[str]) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (mine, theirs) in pairs if mine != theirs), min(len(one), len(other)))


def _top_bytes(engine: Engine, image: str, count: int, writing: Collection[str]) -> int:
    """Add the bytes of the `count` highest layers.

    An instruction that writes nothing, such as `ENV`, has an entry in the history but no layer.
    """
    if not count:
        return 0
    sizes = [
        size
        for text, size in reversed(_history(engine, image))
        if size or text.split(" ", 1)[0] in writing
    ]
    return sum(sizes[:count])


def build_cache(engine: Engine) -> tuple[CacheEntry, ...]:
    """List the entries of the build cache. Raises EngineError.

    Engines before API 1.42 also count everything else that they keep.
    """
    with engine_errors("count its build cache"), engine.fresh(timeout=DF_SECONDS) as api:
        answer = api.get(engine.url("/system/df"), params={"type": "build-cache"})
        answer.raise_for_status()
        found = cast("DiskAnswer", checked(answer, answer.json()))
        return tuple(found.get("BuildCache") or ())


def old_cache_bytes(cache: tuple[CacheEntry, ...], days: int, now: datetime) -> int:
    """Add the bytes of cache entries that no build has used for `days`, and no image shares."""
    before = now - timedelta(days=days)
    return sum(
        int(one.get("Size", 0))
        for one in cache
        if not one.get("InUse") and not one.get("Shared") and _last_used(one) < before
    )


def _last_used(entry: CacheEntry) -> datetime:
    text = entry.get("LastUsedAt") or entry.get("CreatedAt") or ""
    try:
        # The engine writes nanoseconds, which datetime does not read.
        return datetime.fromisoformat(text[:19]).replace(tzinfo=timezone.utc)
    except ValueError:
        return datetime.now(timezone.utc)


def prune_cache(engine: Engine, days: int) -> int:
    """Remove cache that no build has used for `days`; return the bytes that were freed."""
    with engine_errors("prune its build cache"), engine.fresh(timeout=DF_SECONDS) as api:
        filters = json.dumps({"until": [f"{days * 24}h"]})
        answer = api.post(engine.url("/build/prune"), params={"filters": filters})
        answer.raise_for_status()
        found = cast("PruneAnswer", checked(answer, answer.json()))
        return int(found.get("SpaceReclaimed") or 0)


def remove_image(engine: Engine, image_id: str) -> bool:
    """Remove an image, unless it got a tag, a child or a container meanwhile."""
    with engine_errors(f"remove {image_id}"):
        try:
            engine.api.remove_image(image_id)
        except sdk.errors.APIError as error:
            if error.status_code in (404, 409):
                return False
            raise
    return True


def remove_container(engine: Engine, name: str) -> bool:
    """Remove a container, unless it runs again."""
    with engine_errors(f"remove {name}"):
        try:
            engine.api.remove_container(name)
        except sdk.errors.APIError as error:
            if error.status_code in (404, 409):
                return False
            raise
    return True


def stop_container(engine: Engine, name: str) -> None:
    """Kill a container, if it still runs."""
    with engine_errors(f"stop {name}"):
        try:
            engine.api.kill(name)
        except sdk.errors.APIError as error:
            if error.status_code not in (404, 409):
                raise
