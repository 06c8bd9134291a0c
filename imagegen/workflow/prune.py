"""`imagegen prune` removes images and build cache that are no longer needed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from imagegen.config.payload import open_payload, there
from imagegen.config.state import state_folder
from imagegen.engine import client
from imagegen.engine.images.engine_contents import (
    build_cache,
    engine_contents,
    old_cache_bytes,
    prune_cache,
    remove_container,
    remove_image,
    stop_container,
)
from imagegen.errors import EngineError
from imagegen.inspection.sbom_files import billed_images, remove_sboms
from imagegen.journal.journal import Journal
from imagegen.journal.locks import cell_lock_path, engine_locks, free
from imagegen.journal.reading import from_journal, reading_journal
from imagegen.maintenance.prune import superfluous, without_image
from imagegen.matrix.reader import matrix_names, no_such_matrix
from imagegen.model.labels import LABEL_MATRIX
from imagegen.renderer.dockerfile import COUNTED
from imagegen.text import human_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence, Set

    from imagegen.config.payload import Payload
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
    overlay: Path | None = None


def prune(options: PruneOptions, console: Console) -> None:
    """Remove what is no longer needed; with `dry_run`, only show it.

    Raises NothingSelectedError for a matrix that is neither a file nor the label of an image.
    """
    options = replace(options, matrices=tuple(map(_name_of, options.matrices)))
    payload = open_payload(options.overlay)
    unknown = [one for one in options.matrices if one not in matrix_names(payload)]
    engine, state = _connected(payload, unknown), state_folder()
    # Read before the engine's images are listed, so that an image built meanwhile keeps its bill.
    billed = billed_images(state)
    found = engine_contents(engine, COUNTED)
    labelled = {one.labels[LABEL_MATRIX] for one in found.images}
    for name in unknown:
        if name not in labelled:
            raise no_such_matrix(payload, name)
    published = _published(options, console)
    locks = engine_locks(client.engine_machine(engine).id, state)
    images = superfluous(found, published, options.matrices, partial(_being_built, locks))
    containers = () if options.matrices else found.containers
    if not options.dry_run:
        images = _remove(engine, images, containers, found.running)
    there = frozenset(billed) if options.matrices else found.there
    bills = without_image(billed, {one.id for one in images}, there, published)
    if not options.dry_run:
        for image_id in bills:
            remove_sboms(image_id, state)
    cache_bytes = _prune_cache(engine, options)
    _show(images, containers, bills, cache_bytes, found.running, console, dry_run=options.dry_run)


def _name_of(matrix: str) -> str:
    """Return the name of a matrix that may be given by the path of its file."""
    path = Path(matrix)
    return path.stem if matrix.endswith((".yaml", ".yml")) and there(path) else matrix


def _connected(payload: Payload, unknown: Sequence[str]) -> Engine:
    """Connect to the engine; without one, a name that is no matrix is the first error."""
    try:
        return client.connect()
    except EngineError:
        for name in unknown:
            raise no_such_matrix(payload, name) from None
        raise


def _published(options: PruneOptions, console: Console) -> set[str]:
    """Read which images were ever published; only a dry run goes on where that is not known."""
    if options.dry_run:
        return from_journal(Journal.published_images, console.note)
    return reading_journal().published_images()


def _being_built(locks: Path, tag: str) -> bool:
    return bool(tag) and not free(cell_lock_path(locks, tag))


def _remove(
    engine: Engine, images: Sequence[Goes], containers: Sequence[str], running: Set[str]
) -> list[Goes]:
    """Remove images and containers; return the images that were removed.

    An image that got a tag in the meantime is not removed.
    """
    for name in containers:
        if name in running:
            stop_container(engine, name)
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
    running: Set[str],
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
        why = "the run that started it was killed" if name in running else "stopped, and not needed"
        console.line(f"container {name}: {why}")
    for image_id in bills:
        console.line(f"sbom of {image_id[7:19]}: its image does not exist, or is removed now")
    verb = "would go" if dry_run else "went"
    sizes = f"{human_bytes(whole)} and {human_bytes(cache_bytes)} of cache"
    console.line(f"{len(images)} images with {sizes} {verb}")
