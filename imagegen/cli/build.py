"""`imagegen build`: the main job."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from imagegen.cli import options

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from imagegen.console import Console
    from imagegen.family import Family
    from imagegen.lock import Lock
    from imagegen.model import BaseMode, BuildRecord, Recipe


@click.command("build")
@options.matrix
@options.cells
@options.jobs
@click.option("--force", is_flag=True, help="build also what is up to date, without the cache")
@click.option(
    "--no-validate", is_flag=True, help="tag without `validate --static`; the label says so"
)
@click.option(
    "--locked", is_flag=True, help="exactly what the matrix's .lock.yaml says; refuse what drifted"
)
@options.allow_unverified
@options.ca_bundle
@options.base
@options.common
def command(
    matrix: str,
    cells: tuple[str, ...],
    jobs: int | None,
    force: bool,
    no_validate: bool,
    locked: bool,
    allow_unverified: bool,
    ca_bundle: Path | None,
    base: BaseMode | None,
    console: Console,
    overlay: Path | None,
) -> None:
    """Build the stale cells of a matrix, validate each new image, then move its tag."""
    from imagegen.engine.client import connect
    from imagegen.family import House
    from imagegen.journal import open_journal
    from imagegen.workflow import BuildWishes, build_failures, build_recipes, recorded

    book = open_journal()
    house = House(overlay)
    family = house.family(matrix)
    recipes = house.recipes(family, cells)
    lock = _lock(family, recipes) if locked else None
    engine = connect()
    wishes = BuildWishes(jobs, force, not no_validate, ca_bundle, base, allow_unverified, lock)
    started = time.monotonic()
    with recorded(book, "build") as run_id:
        records = build_recipes(engine, recipes, house.payload, wishes, console, book, run_id)
        _report(records, time.monotonic() - started, console)
        failures = build_failures(records)
        if failures is not None:
            raise failures


def _lock(family: Family, recipes: Sequence[Recipe]) -> Lock:
    """The lock of a family, if all that the cells ask for is in it."""
    from imagegen.lock import drift_of_cells, drifted, lock_path, read_lock

    lock = read_lock(lock_path(family.matrix.file))
    found = drift_of_cells(lock, recipes)
    if found:
        raise drifted(lock, found)
    return lock


def _report(records: Sequence[BuildRecord], seconds: float, console: Console) -> None:
    from imagegen.console import human_bytes, human_seconds

    console.data(
        [
            {
                "cell": record.cell_id,
                "image": record.tag,
                "outcome": record.outcome,
                "id": record.image_id,
                "seconds": round(record.seconds, 1),
                "size_bytes": record.size_bytes,
                "cause": record.cause,
                "log": record.log,
            }
            for record in records
        ]
    )
    console.table(
        ("cell", "outcome", "took", "size", "image"),
        [
            (
                record.cell_id,
                record.outcome.replace("-", " "),
                human_seconds(record.seconds) if record.seconds else "-",
                human_bytes(record.size_bytes) if record.size_bytes else "-",
                record.tag,
            )
            for record in records
        ],
    )
    good = sum(record.outcome in ("built", "up-to-date") for record in records)
    console.line(f"{good} of {len(records)} images ready in {human_seconds(seconds)}")
