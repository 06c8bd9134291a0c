"""Run a plan on an engine: which cells are stale, build them side by side, move tags at the end.

A tag moves only after the gate (`validate --static` in the new image) passed. A failed cell stops
no other; Ctrl-C cancels on the engine too, and nothing half-done keeps a tag.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from imagegen.builder.cell import (
    BuildOptions,
    Run,
    build_cell,
    lines,
    not_begun,
    up_to_date,
)
from imagegen.builder.engine_request import remove_packed
from imagegen.builder.stale import Staleness, find_stale, in_turns
from imagegen.engine import client
from imagegen.engine.builds import buildkit
from imagegen.engine.images.bases import ensure_base
from imagegen.errors import EngineError, Interrupted
from imagegen.model.base import base_of
from imagegen.model.build import BuildRecord
from imagegen.sources.mirrors import rewrite_image
from imagegen.sources.supply import supply

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from imagegen.builder.shared_export import Packing
    from imagegen.config.network import BuildEnv
    from imagegen.console.progress import Board
    from imagegen.engine.builds.context import HostFile
    from imagegen.engine.client import Engine
    from imagegen.errors import ImagegenError
    from imagegen.model.part import Part
    from imagegen.model.recipe import Recipe

__all__ = ["BuildOptions", "build_family"]

IN_FLIGHT = 2
"""Cells begun for each build that may work: of the others, images are packed and judged."""


def build_family(
    engine: Engine, recipes: Sequence[Recipe], options: BuildOptions, board: Board
) -> list[BuildRecord]:
    """Build what is stale; one record a recipe, in their order.

    Raises Interrupted on Ctrl-C, EngineError when the engine cannot be used at all, and before
    anything is built what `supply` raises for parts that cannot be had, and a lock for drift.
    """
    found = find_stale(engine, recipes, force=options.force, lock=options.lock)
    packing = options.before(found, board)
    records = {s.recipe.spec.cell.id: up_to_date(s, board) for s in found if not s.why}
    for record in records.values():
        options.on_record(record)
    stale = [s for s in found if s.why]
    broken = _bring(engine, stale, options, board, records, packing) if stale else None
    whole = [records[recipe.spec.cell.id] for recipe in recipes]
    if broken is not None:
        options.on_broken(whole)
        raise broken
    return whole


def _bring(
    engine: Engine,
    stale: Sequence[Staleness],
    options: BuildOptions,
    board: Board,
    records: dict[str, BuildRecord],
    packing: Packing,
) -> ImagegenError | None:
    """Build these cells and add a record for each, begun or not; what ended it early, if it did."""
    try:
        run, without = prepare(engine, stale, options, board)
        run.packing = packing
    except KeyboardInterrupt:
        broken: ImagegenError | None = _interrupted()
    else:
        for item, record in without:
            records[item.recipe.spec.cell.id] = record
            options.on_record(record)
        standing = [s for s in stale if base_of(s.recipe.spec).id in run.bases]
        broken = _build_stale(run, in_turns(standing), records)
        remove_packed(run)
    for item in stale:
        if item.recipe.spec.cell.id not in records:
            records[item.recipe.spec.cell.id] = not_begun(item.recipe)
            options.on_record(records[item.recipe.spec.cell.id])
    return broken


def _interrupted() -> ImagegenError:
    return Interrupted.of(
        "interrupted: the running builds were cancelled, none of their tags moved",
        hint="`imagegen build --resume`, or the same command, goes on where this run's layers end",
    )


def prepare(
    engine: Engine, stale: Sequence[Staleness], options: BuildOptions, board: Board
) -> tuple[Run, list[tuple[Staleness, BuildRecord]]]:
    """What the builds share: parts, bases, environments; and the cells that have no base.

    Raises EngineError for an engine without BuildKit, what `supply` raises for parts that cannot
    be had, and a lock for drift.
    """
    client.require_buildkit(engine)
    parts = _supply(stale, options, board)
    bases, without = _ensure_bases(engine, stale, options, board)
    envs = _envs(engine, stale, options, bases)
    return Run(engine, options, board, bases, parts, envs), without


def _supply(
    stale: Sequence[Staleness], options: BuildOptions, board: Board
) -> dict[Part, HostFile]:
    users = {part: item.recipe.spec.cell.id for item in stale for part in item.recipe.parts}
    cell = next(iter(users.values()), "")
    return supply(users, options.store, lambda line: board.step(cell, line))


def _envs(
    engine: Engine, stale: Sequence[Staleness], options: BuildOptions, bases: Mapping[str, str]
) -> dict[str, BuildEnv]:
    """OS id -> the build environment of its cells."""
    if options.lock is None:
        return dict.fromkeys(bases, options.env)
    recipes = [item.recipe for item in stale]
    return {
        os_id: options.lock.environment(
            engine, [recipe for recipe in recipes if base_of(recipe.spec).id == os_id], options.env
        )
        for os_id in bases
    }


def _ensure_bases(
    engine: Engine, stale: Sequence[Staleness], options: BuildOptions, board: Board
) -> tuple[dict[str, str], list[tuple[Staleness, BuildRecord]]]:
    """OS id -> image id of its base, and the cells whose base cannot be had."""
    found: dict[str, str] = {}
    failed: dict[str, EngineError] = {}
    for item in stale:
        spec = item.recipe.spec
        if base_of(spec).id in found or base_of(spec).id in failed:
            continue
        try:
            found[base_of(spec).id] = _ensure_base(engine, item.recipe, options, board)
        except EngineError as error:
            failed[base_of(spec).id] = error
    return found, [
        (item, _baseless(item.recipe, failed[base_of(item.recipe.spec).id], board))
        for item in stale
        if base_of(item.recipe.spec).id in failed
    ]


def _ensure_base(engine: Engine, recipe: Recipe, options: BuildOptions, board: Board) -> str:
    spec = recipe.spec
    wanted = base_of(spec)
    base = ensure_base(
        engine,
        wanted,
        options.base_mode or spec.cell.base,
        lambda line: board.step(spec.cell.id, f"base: {line}"),
        rewrite_image(wanted.image, options.store.mirrors),
    )
    return base.id


def _baseless(recipe: Recipe, error: EngineError, board: Board) -> BuildRecord:
    spec = recipe.spec
    board.done(spec.cell.id, "failed", "failed: base")
    return BuildRecord(
        spec.cell.id, spec.tag, recipe.digest, "failed", cause="base", detail=lines(error)
    )


@dataclass
class _Work:
    """Cells that wait for their turn, in order, and those that were begun."""

    waiting: deque[Staleness]
    begun: set[Future[BuildRecord]] = field(default_factory=set)


def _build_stale(
    run: Run, stale: Sequence[Staleness], records: dict[str, BuildRecord]
) -> ImagegenError | None:
    work = _Work(deque(stale))
    with ThreadPoolExecutor(max_workers=IN_FLIGHT * max(1, run.options.jobs)) as pool:
        try:
            _collect(run, work, pool, records)
        except KeyboardInterrupt:
            _stop(run, work)
            _collect(run, work, pool, records)
            return _interrupted()
    if run.lost is None:
        return None
    of_these = [records.get(item.recipe.spec.cell.id) for item in stale]
    ready = sum(one is not None and one.outcome in ("built", "up-to-date") for one in of_these)
    return EngineError.of(
        f"the engine died: {ready} of {len(stale)} images were ready by then",
        evidence=lines(run.lost),
        hint="start it again (`imagegen doctor`), then `imagegen build --resume`",
    )


def _collect(
    run: Run, work: _Work, pool: ThreadPoolExecutor, records: dict[str, BuildRecord]
) -> None:
    """Begin each cell in its turn and hand on each record as soon as it is there.

    Waits in short turns, so Ctrl-C is seen at once, and an image that is packed. With the engine
    dead, what has not begun does not begin.
    """
    while work.waiting or work.begun:
        _begin(run, work, pool)
        done, _ = wait(work.begun, timeout=0.2, return_when=FIRST_COMPLETED)
        for future in done:
            record = future.result()
            if record.cell_id not in records:
                records[record.cell_id] = record
                run.options.on_record(record)
            work.begun.discard(future)
        if run.lost is not None and not run.stopping:
            _stop(run, work)


def _begin(run: Run, work: _Work, pool: ThreadPoolExecutor) -> None:
    jobs = max(1, run.options.jobs)
    while len(run.working) < jobs and len(work.begun) < IN_FLIGHT * jobs:
        ready = (s for s in work.waiting if not run.packing.waits(s.recipe.spec.cell.id))
        item = next(ready, None)
        if item is None:
            return
        work.waiting.remove(item)
        run.working.add(item.recipe.spec.cell.id)
        run.packing.begin(item.recipe.spec.cell.id)
        work.begun.add(pool.submit(_work_at, run, item))


def _work_at(run: Run, item: Staleness) -> BuildRecord:
    try:
        return build_cell(run, item.recipe, item.why)
    finally:
        run.working.discard(item.recipe.spec.cell.id)
        run.packing.end(item.recipe.spec.cell.id)


def _stop(run: Run, work: _Work) -> None:
    run.stopping = True
    work.waiting.clear()
    # An engine that is dead has nothing left to cancel.
    with suppress(EngineError):
        for build_id in list(run.running.values()):
            buildkit.cancel(run.engine, build_id)
        if run.options.gate is not None:
            run.options.gate.stop()
