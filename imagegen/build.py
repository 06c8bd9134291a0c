"""Run a plan on an engine: which cells are stale, build them side by side, move tags at the end.

A tag moves only after the gate (`validate --static` in the new image) passed. A failed cell stops
no other; Ctrl-C cancels on the engine too, and nothing half-done keeps a tag.
"""

from __future__ import annotations

import time
import uuid
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential

from imagegen.build_log import BuildLog
from imagegen.engine import buildkit, images
from imagegen.engine.bases import alias, ensure_base
from imagegen.errors import EngineError, ImagegenError, Interrupted
from imagegen.labels import labels_of
from imagegen.model import BuildRecord
from imagegen.staleness import Staleness, find_stale, spread
from imagegen.supply import supply

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from imagegen.buildenv import BuildEnv
    from imagegen.console import Board
    from imagegen.engine.client import Engine
    from imagegen.locking import LockedBuild
    from imagegen.model import BaseMode, Recipe
    from imagegen.parts import Part
    from imagegen.supply import Store

ATTEMPTS = 4
HEALING = ("network",)
"""Causes that can heal by themselves; nothing else is tried again."""


class Gate(Protocol):
    """Decides whether a new image may have its tag; raises ImagegenError if not.

    `stop` ends whatever it runs now; those calls then raise.
    """

    def __call__(self, image_id: str, recipe: Recipe, log: Callable[[str], None]) -> None: ...

    def stop(self) -> None: ...


@dataclass(frozen=True)
class BuildOptions:
    """How to build. `jobs` builds at a time; `logs` is the folder for a log file a cell; `store`
    has the parts that recipes mount; `lock` is what the builds are held to."""

    jobs: int
    logs: Path
    env: BuildEnv
    gate: Gate | None
    store: Store
    lock: LockedBuild | None = None
    force: bool = False
    base_mode: BaseMode | None = None


@dataclass
class _Run:
    engine: Engine
    options: BuildOptions
    board: Board
    bases: Mapping[str, str]
    parts: Mapping[Part, buildkit.HostFile]
    envs: Mapping[str, BuildEnv]
    running: dict[str, str] = field(default_factory=dict)
    stopping: bool = False


def build_family(
    engine: Engine, recipes: Sequence[Recipe], options: BuildOptions, board: Board
) -> list[BuildRecord]:
    """Build what is stale; one record a recipe, in their order.

    Raises Interrupted on Ctrl-C, EngineError when the engine cannot be used at all, and before
    anything is built what `supply` raises for parts that cannot be had, and a lock for drift.
    """
    found = find_stale(engine, recipes, force=options.force, lock=options.lock)
    records = {s.recipe.spec.cell.id: _up_to_date(s, board) for s in found if not s.why}
    stale = [s for s in found if s.why]
    if stale:
        parts = _supply(stale, options, board)
        bases, without = _ensure_bases(engine, stale, options, board)
        run = _Run(engine, options, board, bases, parts, _envs(engine, stale, options, bases))
        records |= {item.recipe.spec.cell.id: record for item, record in without}
        records |= _build_stale(run, spread([s for s in stale if s.recipe.spec.os.id in bases]))
    return [records[recipe.spec.cell.id] for recipe in recipes]


def _supply(
    stale: Sequence[Staleness], options: BuildOptions, board: Board
) -> dict[Part, buildkit.HostFile]:
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
            engine, [recipe for recipe in recipes if recipe.spec.os.id == os_id], options.env
        )
        for os_id in bases
    }


def _up_to_date(found: Staleness, board: Board) -> BuildRecord:
    spec, image = found.recipe.spec, found.image
    assert image is not None
    board.done(spec.cell.id, "up-to-date", f"up to date, {image.id[7:19]}")
    return BuildRecord(
        spec.cell.id,
        spec.tag,
        found.recipe.digest,
        "up-to-date",
        image_id=image.id,
        size_bytes=image.size_bytes,
    )


def _ensure_bases(
    engine: Engine, stale: Sequence[Staleness], options: BuildOptions, board: Board
) -> tuple[dict[str, str], list[tuple[Staleness, BuildRecord]]]:
    """OS id -> image id of its base, and the cells whose base cannot be had."""
    found: dict[str, str] = {}
    failed: dict[str, EngineError] = {}
    for item in stale:
        spec = item.recipe.spec
        if spec.os.id in found or spec.os.id in failed:
            continue
        try:
            found[spec.os.id] = _ensure_base(engine, item.recipe, options, board)
        except EngineError as error:
            failed[spec.os.id] = error
    return found, [
        (item, _baseless(item.recipe, failed[item.recipe.spec.os.id], board))
        for item in stale
        if item.recipe.spec.os.id in failed
    ]


def _ensure_base(engine: Engine, recipe: Recipe, options: BuildOptions, board: Board) -> str:
    spec = recipe.spec
    base = ensure_base(
        engine,
        spec.os,
        options.base_mode or spec.cell.base,
        lambda line: board.step(spec.cell.id, f"base: {line}"),
    )
    return base.id


def _baseless(recipe: Recipe, error: EngineError, board: Board) -> BuildRecord:
    spec = recipe.spec
    board.done(spec.cell.id, "failed", "failed: base")
    return BuildRecord(
        spec.cell.id, spec.tag, recipe.digest, "failed", cause="base", detail=_lines(error)
    )


def _build_stale(run: _Run, stale: Sequence[Staleness]) -> dict[str, BuildRecord]:
    with ThreadPoolExecutor(max_workers=max(1, run.options.jobs)) as pool:
        futures = {pool.submit(_build_cell, run, item.recipe, item.why): item for item in stale}
        try:
            _wait(futures)
        except KeyboardInterrupt:
            _stop(run, futures)
            raise Interrupted.of(
                "interrupted: the running builds were cancelled, none of their tags moved",
                hint="the same command goes on where the layers of this run end",
            ) from None
        return {item.recipe.spec.cell.id: future.result() for future, item in futures.items()}


def _wait(futures: Mapping[Future[BuildRecord], Staleness]) -> None:
    """Wait in short turns, so that Ctrl-C is seen at once."""
    left = set(futures)
    while left:
        done, left = wait(left, timeout=0.2, return_when=FIRST_COMPLETED)
        for future in done:
            future.result()


def _stop(run: _Run, futures: Mapping[Future[BuildRecord], Staleness]) -> None:
    run.stopping = True
    for future in futures:
        future.cancel()
    for build_id in list(run.running.values()):
        buildkit.cancel(run.engine, build_id)
    if run.options.gate is not None:
        run.options.gate.stop()


def _build_cell(run: _Run, recipe: Recipe, why: str) -> BuildRecord:
    """Build, gate and tag one cell; failures become its record, the engine's death is raised."""
    cell_id = recipe.spec.cell.id
    log = BuildLog(run.options.logs / f"{cell_id.replace('/', '-')}.log", recipe, run.board)
    started = time.monotonic()
    with log:
        log.note(f"{cell_id}: {why}")
        try:
            image_id = _attempts(run, recipe, log)
            refused = _refused(run, image_id, recipe, log)
            if run.stopping:
                return log.failed("cancelled", ("interrupted",), time.monotonic() - started)
            if refused:
                return log.failed("validation", refused, time.monotonic() - started, image_id)
            images.tag(run.engine, image_id, recipe.spec.tag)
        except buildkit.StepError as error:
            cause = "cancelled" if error.cancelled else error.cause
            return log.failed(cause, log.evidence(error), time.monotonic() - started)
        image = images.find(run.engine, image_id)
        size = image.size_bytes if image else 0
        return log.built(image_id, size, time.monotonic() - started)


def _refused(run: _Run, image_id: str, recipe: Recipe, log: BuildLog) -> tuple[str, ...]:
    """Why the image may not have its tag; an image that does not even start stops no other cell."""
    if run.options.gate is None or run.stopping:
        return ()
    run.board.step(recipe.spec.cell.id, "validate --static")
    try:
        run.options.gate(image_id, recipe, log.note)
    except ImagegenError as error:
        return _lines(error)
    return ()


def _lines(error: ImagegenError) -> tuple[str, ...]:
    return tuple(line for p in error.problems for line in (p.text, *p.evidence, p.hint) if line)


def _attempts(run: _Run, recipe: Recipe, log: BuildLog) -> str:
    retrying = Retrying(
        stop=stop_after_attempt(ATTEMPTS),
        wait=wait_exponential(multiplier=2, max=30),
        retry=retry_if_exception(lambda error: _may_heal(run, error)),
        before_sleep=lambda state: log.note(f"network failure, attempt {state.attempt_number + 1}"),
        reraise=True,
    )
    return retrying(_build_once, run, recipe, log)


def _may_heal(run: _Run, error: BaseException) -> bool:
    return (
        isinstance(error, buildkit.StepError)
        and not run.stopping
        and not error.cancelled
        and error.cause in HEALING
    )


def _build_once(run: _Run, recipe: Recipe, log: BuildLog) -> str:
    spec, lock = recipe.spec, run.options.lock
    build_id = uuid.uuid4().hex
    run.running[spec.cell.id] = build_id
    parts = {part: run.parts[part] for part in recipe.parts}
    env = run.envs[spec.os.id]
    request = buildkit.BuildRequest(
        context=buildkit.pack_context(
            (lock.recipe(recipe) if lock else recipe).dockerfile,
            [*recipe.files, *env.files],
            parts.values(),
        ),
        build_id=build_id,
        labels=labels_of(
            recipe,
            run.bases[spec.os.id],
            parts,
            gated=run.options.gate is not None,
            lock=lock.digest(spec.os.id) if lock else "",
        ),
        buildargs={"BASE": alias(spec.os), **dict(env.buildargs)},
        no_cache=run.options.force,
    )
    try:
        return buildkit.build(run.engine, request, log.event)
    finally:
        run.running.pop(spec.cell.id, None)
