"""Build the stale cells of a plan at the same time, on one engine.

A tag moves only after the gate (`validate --static` in the new image) passed. A failed cell does
not stop the others. Ctrl-C cancels the builds on the engine too; no unfinished image gets a tag.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from imagegen.builder.cell import build_cell, not_begun
from imagegen.builder.cell_request import remove_exported
from imagegen.builder.plan import BuildResult
from imagegen.builder.prepare import prepare
from imagegen.builder.up_to_date import in_turns, up_to_date
from imagegen.engine.builds import buildkit
from imagegen.errors import EngineError, Interrupted
from imagegen.events.events import CellEnded, CellsQueued
from imagegen.model.image import base_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from imagegen.builder.plan import BuildPlan
    from imagegen.builder.prepare import BuildState
    from imagegen.builder.up_to_date import Staleness
    from imagegen.engine.client import Engine
    from imagegen.errors import ImagegenError
    from imagegen.events.events import Sink
    from imagegen.model.build import BuildOptions, BuildRecord

IN_FLIGHT = 2
"""Cells in progress for each job: while some run their steps, others are exported or validated."""


def build_family(plan: BuildPlan, engine: Engine, options: BuildOptions, sink: Sink) -> BuildResult:
    """Build the stale cells of a plan.

    Returns one record for each cell, in the order of the plan; each is emitted as soon as it
    exists. An error that ends the build early (Ctrl-C, or an engine that died) is in the result.

    Raises EngineError when the engine cannot be used at all. Before anything is built, it raises
    the errors of `supply` for parts that are not available, and the error of the lock where
    packages differ from it.
    """
    records = _Records(sink)
    records.add(up_to_date(one) for one in plan.cells if not one.why)
    stale = [one for one in plan.cells if one.why]
    broken = _build_stale(plan, engine, options, records) if stale else None
    records.add(not_begun(one.recipe) for one in stale)
    ordered = tuple(records.by_cell[one.recipe.spec.cell.id] for one in plan.cells)
    return BuildResult(ordered, broken)


class _Records:
    """Keep the first record of each cell, and emit it when it comes."""

    def __init__(self, sink: Sink) -> None:
        self.sink, self.by_cell = sink, dict[str, "BuildRecord"]()

    def add(self, records: Iterable[BuildRecord]) -> None:
        for record in records:
            if record.cell_id not in self.by_cell:
                self.by_cell[record.cell_id] = record
                self.sink(CellEnded(record))


def _build_stale(
    plan: BuildPlan, engine: Engine, options: BuildOptions, records: _Records
) -> ImagegenError | None:
    """Build the stale cells; returns the error that ended this early, or None."""
    stale = [one for one in plan.cells if one.why]
    try:
        state, baseless = prepare(engine, stale, plan, options, records.sink)
    except KeyboardInterrupt:
        return _interrupted()
    records.add(baseless)
    ready = [one for one in stale if base_of(one.recipe.spec).id in state.bases]
    broken = _build_in_turns(state, in_turns(ready), records)
    remove_exported(state)
    return broken


def _interrupted() -> ImagegenError:
    return Interrupted.of(
        "interrupted: the running builds were cancelled, none of their tags moved",
        hint="`imagegen build --resume`, or the same command, goes on where this run's layers end",
    )


@dataclass
class _Queue:
    """Hold the cells that wait, in order, and the builds that were begun.

    `reasons` is what cells were last reported to wait for.
    """

    waiting: deque[Staleness]
    begun: set[Future[BuildRecord]] = field(default_factory=set)
    reasons: dict[str, str] = field(default_factory=dict)


def _build_in_turns(
    state: BuildState, stale: Sequence[Staleness], records: _Records
) -> ImagegenError | None:
    queue = _Queue(deque(stale))
    with ThreadPoolExecutor(max_workers=IN_FLIGHT * state.plan.jobs) as pool:
        try:
            _collect(state, queue, pool, records)
        except KeyboardInterrupt:
            _stop(state, queue)
            _collect(state, queue, pool, records)
            return _interrupted()
    if state.lost is None:
        return None
    of_these = [records.by_cell.get(item.recipe.spec.cell.id) for item in stale]
    ready = sum(one is not None and one.outcome in ("built", "up-to-date") for one in of_these)
    return EngineError.of(
        f"the engine died: {ready} of {len(stale)} images were ready by then",
        evidence=state.lost.lines,
        hint="start it again (`imagegen doctor`), then `imagegen build --resume`",
    )


def _collect(state: BuildState, queue: _Queue, pool: ThreadPoolExecutor, records: _Records) -> None:
    """Begin the cells in order, and take each record as soon as it exists.

    It waits 0.2 s at a time, so that it soon notices Ctrl-C, and a build that no longer runs steps.
    No cell begins after the engine died.
    """
    while queue.waiting or queue.begun:
        _begin(state, queue, pool)
        _say_what_for(state, queue)
        done, _ = wait(queue.begun, timeout=0.2, return_when=FIRST_COMPLETED)
        for future in done:
            records.add([future.result()])
            queue.begun.discard(future)
        if state.lost is not None and not state.stopping:
            _stop(state, queue)


def _begin(state: BuildState, queue: _Queue, pool: ThreadPoolExecutor) -> None:
    jobs = state.plan.jobs
    while len(state.working) < jobs and len(queue.begun) < IN_FLIGHT * jobs:
        ready = (s for s in queue.waiting if not state.export.waits_for(s.recipe.spec.cell.id))
        item = next(ready, None)
        if item is None:
            return
        queue.waiting.remove(item)
        state.working.add(item.recipe.spec.cell.id)
        state.export.begin(item.recipe.spec.cell.id)
        queue.begun.add(pool.submit(_build_one, state, item))


def _say_what_for(state: BuildState, queue: _Queue) -> None:
    """Report what the cells in the queue wait for, once for all that wait for the same."""
    full = len(queue.begun) >= IN_FLIGHT * state.plan.jobs
    turn = "the export or the gate of another image" if full else "a free build slot"
    waiting = [item.recipe.spec.cell.id for item in queue.waiting]
    reasons = {cell: state.export.waits_for(cell) or turn for cell in waiting}
    news = [cell for cell in waiting if queue.reasons.get(cell) != reasons[cell]]
    for reason in dict.fromkeys(reasons[cell] for cell in news):
        state.sink(CellsQueued(tuple(c for c in news if reasons[c] == reason), reason))
    queue.reasons = reasons


def _build_one(state: BuildState, item: Staleness) -> BuildRecord:
    try:
        return build_cell(state, item.recipe, item.why)
    finally:
        state.working.discard(item.recipe.spec.cell.id)
        state.export.end(item.recipe.spec.cell.id)


def _stop(state: BuildState, queue: _Queue) -> None:
    state.stopping = True
    queue.waiting.clear()
    # On a dead engine there is nothing left to cancel.
    with suppress(EngineError):
        for build_id in list(state.running.values()):
            buildkit.cancel(state.engine, build_id)
        if state.gate is not None:
            state.gate.stop()
