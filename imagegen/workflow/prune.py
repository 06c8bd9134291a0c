"""`imagegen prune` removes images and build cache that are no longer needed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING

from imagegen.config.state import state_folder
from imagegen.engine import client
from imagegen.engine.images.engine_contents import (
    build_cache,
    engine_contents,
    old_cache_bytes,
    prune_cache,
    remove_container,
    remove_image,
)
from imagegen.inspection.sbom_files import billed_images, remove_sboms
from imagegen.journal.journal import open_journal
from imagegen.journal.locks import cell_lock_path, engine_locks, free
from imagegen.maintenance.prune import superfluous, without_image
from imagegen.renderer.dockerfile import COUNTED
from imagegen.text import human_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from imagegen.console.console import Console
    from imagegen.engine.client import Engine
    from imagegen.maintenance.prune import Goes


@dataclass(frozen=True)
class PruneOptions:
    """The options of the command line, with the same names."""

    matrices: tuple[str, ...] = ()
    dry_run: bool = False
    cache_days: int = 14
    keep_cache: bool = False


def prune(options: PruneOptions, console: Console) -> None:
    """Remove what is no longer needed; with `dry_run`, only show it."""
    engine, state = client.connect(), state_folder()
    # Read before the engine's images are listed, so that an image built meanwhile keeps its bill.
    billed = billed_images(state)
    found = engine_contents(engine, COUNTED)
    published = open_journal().published_images()
    locks = engine_locks(client.engine_machine(engine).id, state)
    images = superfluous(found, published, options.matrices, partial(_being_built, locks))
    containers = () if options.matrices else found.containers
    if not options.dry_run:
        images = _remove(engine, images, containers)
    there = frozenset(billed) if options.matrices else found.there
    bills = without_image(billed, {one.id for one in images}, there, published)
    if not options.dry_run:
        for image_id in bills:
            remove_sboms(image_id, state)
    cache_bytes = _prune_cache(engine, options)
    _show(images, containers, bills, cache_bytes, console, dry_run=options.dry_run)


def _being_built(locks: Path, tag: str) -> bool:
    return bool(tag) and not free(cell_lock_path(locks, tag))


def _remove(engine: Engine, images: Sequence[Goes], containers: Sequence[str]) -> list[Goes]:
    """Remove images and containers; return the images that were removed.

    An image that got a tag in the meantime is not removed.
    """
    for name in containers:
        remove_container(engine, name)
    return [one for one in images if remove_image(engine, one.id)]


def _prune_cache(engine: Engine, options: PruneOptions) -> int:
    """Remove old build cache, or count it with `dry_run`; return its bytes.

    Nothing is removed where only some matrices are selected.
    """
    if options.keep_cache or options.matrices:
        return 0
    if options.dry_run:
        now = datetime.now(timezone.utc)
        return old_cache_bytes(build_cache(engine), options.cache_days, now)
    return prune_cache(engine, options.cache_days)


def _show(
    images: Sequence[Goes],
    containers: Sequence[str],
    bills: Sequence[str],
    cache_bytes: int,
    console: Console,
    *,
    dry_run: bool,
) -> None:
    whole = sum(one.size_bytes for one in images)
    console.data(
        {
            "dry_run": dry_run,
            "images": [vars(one) for one in images],
            "containers": list(containers),
            "sboms": list(bills),
            "images_bytes": whole,
            "cache_bytes": cache_bytes,
        }
    )
    if images:
        rows = [(one.id[7:19], one.cell, human_bytes(one.size_bytes), one.why) for one in images]
        console.table(("image", "cell", "its own", "why"), rows)
    for name in containers:
        console.line(f"container {name}: stopped, and not needed")
    for image_id in bills:
        console.line(f"sbom of {image_id[7:19]}: its image does not exist, or is removed now")
    verb = "would go" if dry_run else "went"
    sizes = f"{human_bytes(whole)} and {human_bytes(cache_bytes)} of cache"
    console.line(f"{len(images)} images with {sizes} {verb}")
