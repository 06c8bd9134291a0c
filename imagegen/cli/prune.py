"""`imagegen prune`: disk back from images and cache that nobody needs any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from imagegen.cli import options

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.console.console import Console
    from imagegen.engine.client import Engine
    from imagegen.maintenance.prune import Goes


@click.command("prune")
@click.option("--matrix", "-m", "matrices", multiple=True, help="only its images; may be repeated")
@click.option("--dry-run", is_flag=True, help="say what would go, and remove nothing")
@click.option(
    "--cache-days",
    type=click.IntRange(0),
    default=14,
    show_default=True,
    help="build cache goes that no build has used for so many days",
)
@click.option("--keep-cache", is_flag=True, help="leave the build cache alone")
@options.common
def command(
    matrices: tuple[str, ...],
    dry_run: bool,
    cache_days: int,
    keep_cache: bool,
    console: Console,
    overlay: Path | None,
) -> None:
    """Remove superseded images, leftovers of failed builds, old cache, and bills of materials of
    images that are gone.

    What has a tag, was ever published, or is in a container stays. With `--matrix` the cache stays.
    """
    from imagegen.config.state import state_folder
    from imagegen.engine.client import connect, engine_machine
    from imagegen.engine.images.engine_contents import engine_contents
    from imagegen.inspection.sbom_files import billed_images
    from imagegen.journal.journal import open_journal
    from imagegen.journal.locks import engine_locks
    from imagegen.maintenance.prune import superfluous, without_image
    from imagegen.renderer.dockerfile import COUNTED

    del overlay
    engine, state = connect(), state_folder()
    # Before the look at the engine: an image that is built in the meantime keeps its bill.
    billed = billed_images(state)
    found = engine_contents(engine, COUNTED)
    published = open_journal().published_images()
    locks = engine_locks(engine_machine(engine).id, state)
    goes = superfluous(found, published, matrices, lambda tag: _being_built(locks, tag))
    containers = () if matrices else found.containers
    days = None if keep_cache or matrices else cache_days
    if not dry_run:
        goes = _remove(engine, goes, containers)
    there = frozenset(billed) if matrices else found.there
    bills = without_image(billed, {one.id for one in goes}, there, published)
    if not dry_run:
        _remove_bills(bills, state)
    cache = _cache(engine, days, dry_run=dry_run)
    _show(goes, containers, bills, cache, console, dry_run=dry_run)


def _being_built(locks: Path, tag: str) -> bool:
    from imagegen.journal.locks import cell_lock_path, free

    return bool(tag) and not free(cell_lock_path(locks, tag))


def _remove(engine: Engine, goes: list[Goes], containers: tuple[str, ...]) -> list[Goes]:
    """Those that really went: an image may have got a tag in the meantime."""
    from imagegen.engine.images.engine_contents import remove_container, remove_image

    for name in containers:
        remove_container(engine, name)
    return [one for one in goes if remove_image(engine, one.id)]


def _remove_bills(image_ids: list[str], state: Path) -> None:
    from imagegen.inspection.sbom_files import remove_sboms

    for image_id in image_ids:
        remove_sboms(image_id, state)


def _cache(engine: Engine, days: int | None, *, dry_run: bool) -> int:
    from datetime import datetime, timezone

    from imagegen.engine.images.engine_contents import build_cache, old_cache_bytes, prune_cache

    if days is None:
        return 0
    if dry_run:
        return old_cache_bytes(build_cache(engine), days, datetime.now(timezone.utc))
    return prune_cache(engine, days)


def _show(
    goes: list[Goes],
    containers: tuple[str, ...],
    bills: list[str],
    cache: int,
    console: Console,
    *,
    dry_run: bool,
) -> None:
    from imagegen.text import human_bytes

    whole = sum(one.size_bytes for one in goes)
    console.data(
        {
            "dry_run": dry_run,
            "images": [vars(one) for one in goes],
            "containers": list(containers),
            "sboms": bills,
            "images_bytes": whole,
            "cache_bytes": cache,
        }
    )
    if goes:
        rows = [(one.id[7:19], one.cell, human_bytes(one.size_bytes), one.why) for one in goes]
        console.table(("image", "cell", "its own", "why"), rows)
    for name in containers:
        console.line(f"container {name}: stopped, and of no use")
    for image_id in bills:
        console.line(f"sbom of {image_id[7:19]}: its image is gone, or goes")
    verb = "would go" if dry_run else "went"
    console.line(
        f"{len(goes)} images with {human_bytes(whole)} and {human_bytes(cache)} of cache {verb}"
    )
