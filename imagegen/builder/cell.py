"""One cell from its recipe to its tag: locked, built, tried again, judged by the gate, tagged."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential

from imagegen.builder import up_to_date as standing
from imagegen.builder.build_log import BuildLog
from imagegen.builder.engine_request import pack_shared, request_of, run_request
from imagegen.builder.labels import labels_of
from imagegen.builder.shared_export import Packing
from imagegen.builder.stale import Staleness, find_stale
from imagegen.engine import client
from imagegen.engine.builds import buildkit
from imagegen.engine.images import local_images
from imagegen.errors import EngineError, ImagegenError
from imagegen.journal.locks import cell_lock, locked
from imagegen.model.base import base_of
from imagegen.model.build import BuildRecord
from imagegen.model.size_budget import DEFAULT, OVER_BUDGET, overrun
from imagegen.renderer.provenance import labelled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from imagegen.config.network import BuildEnv
    from imagegen.console.progress import Board
    from imagegen.engine.builds.context import HostFile
    from imagegen.engine.client import Engine
    from imagegen.model.build import StepRecord
    from imagegen.model.cell import BaseMode
    from imagegen.model.part import Part
    from imagegen.model.recipe import Recipe
    from imagegen.model.size_budget import Overrun
    from imagegen.sources.locked_build import LockedBuild
    from imagegen.sources.supply import Store

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
    has the parts that recipes mount; `lock` is what the builds are held to; `locks` is the folder
    whose files keep other processes from the same cell; `on_record` gets each record at once;
    `again` is the command that builds this matrix; `before` sees all cells before anything is
    built, says which large layers they share, and may raise; `on_broken` gets the records of all
    cells where Ctrl-C or a dead engine ends the run, before the error is raised; `last_good` is a
    cell's last build with a tag."""

    jobs: int
    logs: Path
    env: BuildEnv
    gate: Gate | None
    store: Store
    locks: Path
    lock: LockedBuild | None = None
    force: bool = False
    base_mode: BaseMode | None = None
    again: str = ""
    before: Callable[[Sequence[Staleness], Board], Packing] = lambda *_: Packing()
    on_record: Callable[[BuildRecord], None] = lambda _: None
    last_good: Callable[[str], BuildRecord | None] = lambda _: None
    on_broken: Callable[[Sequence[BuildRecord]], None] = lambda _: None


@dataclass
class Run:
    """What the cells of one run share. `lost` is how the engine died, if it did; `working` are the
    cells whose steps run: one that waits for its image to be packed or judged is none of them.
    `packed` are the images that were made for a layer that cells share."""

    engine: Engine
    options: BuildOptions
    board: Board
    bases: Mapping[str, str]
    parts: Mapping[Part, HostFile]
    envs: Mapping[str, BuildEnv]
    packing: Packing = field(default_factory=Packing)
    packed: list[str] = field(default_factory=list)
    running: dict[str, str] = field(default_factory=dict)
    working: set[str] = field(default_factory=set)
    stopping: bool = False
    lost: EngineError | None = None


def up_to_date(found: Staleness, board: Board) -> BuildRecord:
    """The record of a cell that nothing has to be done for."""
    spec = found.recipe.spec
    assert found.image is not None
    record = standing.up_to_date(spec.cell.id, spec.tag, found.recipe.digest, found.image)
    board.up_to_date(record)
    return record


def not_begun(recipe: Recipe) -> BuildRecord:
    """The record of a cell whose turn did not come before the run ended."""
    spec, why = recipe.spec, ("the run ended before this build began",)
    return BuildRecord(
        spec.cell.id, spec.tag, recipe.digest, "cancelled", cause="cancelled", detail=why
    )


def build_cell(run: Run, recipe: Recipe, why: str) -> BuildRecord:
    """Build, gate and tag one cell. Failures become its record; `run.lost` says of a dead engine.

    Where another process builds the cell, this one waits, and takes what came out if it is right.
    """
    spec = recipe.spec
    path = cell_lock(run.options.locks, spec.tag)

    def tell(holder: str) -> None:
        run.board.step(spec.cell.id, f"waits: {holder} builds this cell")

    with locked(path, tell, lambda: run.stopping) as waited:
        if waited and not run.options.force and not run.stopping:
            (now,) = find_stale(run.engine, [recipe], force=False, lock=run.options.lock)
            if not now.why:
                return up_to_date(now, run.board)
        return _logged(run, recipe, why)


def log_path(options: BuildOptions, recipe: Recipe) -> Path:
    """The log file of a cell in this run."""
    return options.logs / f"{recipe.spec.cell.id.replace('/', '-')}.log"


def _logged(run: Run, recipe: Recipe, why: str) -> BuildRecord:
    cell_id = recipe.spec.cell.id
    log = BuildLog(log_path(run.options, recipe), recipe, run.board, run.options.again)
    started = time.monotonic()
    with log:
        log.note(f"{cell_id}: {why}")
        try:
            return _build(run, recipe, log, started)
        except buildkit.StepError as error:
            cause = "cancelled" if error.cancelled or run.stopping else error.cause
            return log.failed(cause, log.evidence(error), time.monotonic() - started)
        except EngineError as error:
            return log.failed(_engine_cause(run, error), lines(error), time.monotonic() - started)


def _build(run: Run, recipe: Recipe, log: BuildLog, started: float) -> BuildRecord:
    image_id = attempts(run, lambda: _build_once(run, recipe, log), log)
    image = local_images.find(run.engine, image_id)
    size = image.size_bytes if image else 0
    layers = local_images.history(run.engine, image_id)
    over, fails = _over_budget(run, recipe, size, log.steps(layers))
    told = over.told(image_id) if over else ()
    if over and fails:
        return log.failed(OVER_BUDGET, told, time.monotonic() - started, image_id)
    refused = _refused(run, image_id, recipe, log)
    if run.stopping:
        return log.failed("cancelled", ("interrupted",), time.monotonic() - started)
    if refused:
        return log.failed("validation", refused, time.monotonic() - started, image_id)
    local_images.tag(run.engine, image_id, recipe.spec.tag)
    return log.built(image_id, size, time.monotonic() - started, layers, told)


def _over_budget(
    run: Run, recipe: Recipe, size_bytes: int, steps: Sequence[StepRecord]
) -> tuple[Overrun | None, bool]:
    """Whether the image is larger than its cell may be, and whether that stops it."""
    cell = recipe.spec.cell
    budget = cell.size_budget or DEFAULT
    return overrun(budget, size_bytes, steps, run.options.last_good(cell.id)), budget.fails


def _engine_cause(run: Run, error: EngineError) -> str:
    """A dead engine ends the whole run; one that refused this build and lives ends this cell."""
    if run.stopping:
        return "cancelled"
    if client.answers(run.engine):
        return "engine refused"
    run.lost = error
    return "engine died"


def _refused(run: Run, image_id: str, recipe: Recipe, log: BuildLog) -> tuple[str, ...]:
    """Why the image may not have its tag; an image that does not even start stops no other cell."""
    if run.options.gate is None or run.stopping:
        return ()
    run.board.step(recipe.spec.cell.id, "validate --static")
    try:
        run.options.gate(image_id, recipe, log.note)
    except EngineError as error:
        if not client.answers(run.engine):
            raise
        return lines(error)
    except ImagegenError as error:
        return lines(error)
    return ()


def lines(error: ImagegenError) -> tuple[str, ...]:
    """All that an error says, a line each."""
    return tuple(line for p in error.problems for line in (p.text, *p.evidence, p.hint) if line)


def attempts(run: Run, once: Callable[[], str], log: BuildLog) -> str:
    """Run one build, again after a while where its failure can heal; the image id."""
    retrying = Retrying(
        stop=stop_after_attempt(ATTEMPTS),
        wait=wait_exponential(multiplier=2, max=30),
        retry=retry_if_exception(lambda error: _may_heal(run, error)),
        before_sleep=lambda state: log.again(state.attempt_number + 1, ATTEMPTS),
        reraise=True,
    )
    return retrying(once)


def _may_heal(run: Run, error: BaseException) -> bool:
    return (
        isinstance(error, buildkit.StepError)
        and not run.stopping
        and not error.cancelled
        and error.cause in HEALING
    )


def _build_once(run: Run, recipe: Recipe, log: BuildLog) -> str:
    spec, lock = recipe.spec, run.options.lock
    labels = labels_of(
        recipe,
        run.bases[base_of(spec).id],
        {part: run.parts[part] for part in recipe.parts},
        gated=run.options.gate is not None,
        lock=lock.digest(base_of(spec).id) if lock else "",
    )
    dockerfile = labelled((lock.recipe(recipe) if lock else recipe).dockerfile, recipe)
    no_cache = run.options.force
    if not no_cache:
        pack_shared(run, recipe, dockerfile, log)
    return run_request(run, recipe, request_of(run, recipe, dockerfile, labels, no_cache), log)
