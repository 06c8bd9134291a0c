"""Build one cell: build its recipe, retry it, let the gate validate the image, tag the image."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential

from imagegen.builder.cell_request import export_shared, labels_for, request_of, run_request
from imagegen.builder.cell_steps import CellSteps
from imagegen.builder.size_budget import OVER_BUDGET, overrun
from imagegen.builder.up_to_date import find_stale, up_to_date
from imagegen.config.state import state_folder
from imagegen.engine import client
from imagegen.engine.builds import buildkit
from imagegen.engine.images import local_images as images
from imagegen.engine.images.inventory import inventory
from imagegen.errors import EngineError, ImagegenError
from imagegen.events.events import (
    CellLogged,
    CellStarted,
    CellWaits,
    ImageValidated,
    Note,
    StepEnded,
    StepStarted,
)
from imagegen.inspection.leftovers import leftovers
from imagegen.inspection.sbom_files import write_sboms
from imagegen.journal.locks import cell_lock_path, holding_lock
from imagegen.journal.log_files import log_path
from imagegen.model.build import GATE_STEP, BuildRecord
from imagegen.model.cell import DEFAULT
from imagegen.model.image import base_of
from imagegen.renderer.provenance import labelled
from imagegen.validation.failures import failed_checks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from imagegen.builder.prepare import BuildState
    from imagegen.builder.size_budget import Overrun
    from imagegen.model.build import StepRecord
    from imagegen.model.recipe import Recipe

ATTEMPTS = 4
HEALING = ("network",)
"""Causes that may disappear by themselves. A build that failed for another cause is not retried."""


def not_begun(recipe: Recipe) -> BuildRecord:
    """Make the record of a cell whose build had not begun when the run ended."""
    spec, why = recipe.spec, ("the run ended before this build began",)
    return BuildRecord(
        spec.cell.id, spec.tag, recipe.digest, "cancelled", cause="cancelled", detail=why
    )


def build_cell(state: BuildState, recipe: Recipe, why: str) -> BuildRecord:
    """Build, validate and tag the image of one cell.

    A failure becomes the record of the cell; `state.lost` is set where the engine died. Where
    another process builds the cell, this one waits for it, and uses its image if that is up to
    date.
    """
    spec = recipe.spec
    path = cell_lock_path(state.plan.locks, spec.tag)

    def on_wait(holder: str) -> None:
        state.sink(CellWaits(spec.cell.id, f"waits: {holder} builds this cell"))

    with holding_lock(path, on_wait, lambda: state.stopping) as waited:
        if waited and not state.options.force and not state.stopping:
            (now,) = find_stale(state.engine, [recipe], force=False, lock=state.plan.lock)
            if not now.why:
                return up_to_date(now)
        return _build_as_record(state, recipe, why)


def steps_of(state: BuildState, recipe: Recipe) -> CellSteps:
    """Make the object that follows the steps of a cell in this build."""
    log = log_path(state.plan.logs, recipe.spec.cell.id)
    return CellSteps(recipe, log, state.sink, state.options.again)


def _build_as_record(state: BuildState, recipe: Recipe, why: str) -> BuildRecord:
    steps = steps_of(state, recipe)
    started = time.monotonic()
    state.sink(CellStarted(recipe.spec.cell.id, why))
    try:
        return _build(state, recipe, steps, started)
    except buildkit.StepError as error:
        cause = "cancelled" if error.cancelled or state.stopping else error.cause
        return steps.failed(cause, steps.evidence(error), time.monotonic() - started)
    except EngineError as error:
        return steps.failed(_engine_cause(state, error), error.lines, time.monotonic() - started)


def _build(state: BuildState, recipe: Recipe, steps: CellSteps, started: float) -> BuildRecord:
    image_id = attempts(state, lambda: _build_once(state, recipe, steps), steps)
    image = images.find(state.engine, image_id)
    size = image.size_bytes if image else 0
    layers = images.history(state.engine, image_id)
    over, fails = _over_budget(state, recipe, size, steps.steps(layers))
    warnings = over.lines(image_id) if over else ()
    if over and fails:
        return steps.failed(OVER_BUDGET, warnings, time.monotonic() - started, image_id)
    judged = time.monotonic()
    refused = _judge(state, image_id, recipe)
    if state.gate is not None:
        steps.ran(GATE_STEP, time.monotonic() - judged)
    if state.stopping:
        return steps.failed("cancelled", ("interrupted",), time.monotonic() - started)
    if refused:
        return steps.failed("validation", refused, time.monotonic() - started, image_id)
    images.tag(state.engine, image_id, recipe.spec.tag)
    return steps.built(image_id, size, time.monotonic() - started, layers, warnings)


def _over_budget(
    state: BuildState, recipe: Recipe, size_bytes: int, steps: Sequence[StepRecord]
) -> tuple[Overrun | None, bool]:
    """Compare an image's size with its budget; the second value says whether that is an error."""
    cell = recipe.spec.cell
    budget = cell.size_budget or DEFAULT
    return overrun(budget, size_bytes, steps, state.plan.last_good.get(cell.id)), budget.fails


def _engine_cause(state: BuildState, error: EngineError) -> str:
    """Find out whether the engine died, or refused this build only.

    A dead engine ends the whole run: it is kept in `state.lost`. A refusal ends this cell alone.
    """
    if state.stopping:
        return "cancelled"
    if client.is_alive(state.engine):
        return "engine refused"
    state.lost = error
    return "engine died"


def _judge(state: BuildState, image_id: str, recipe: Recipe) -> tuple[str, ...]:
    """Let the gate validate an image; returns why the image may not get its tag, or nothing.

    An image that does not even start does not stop the other cells.
    """
    if state.gate is None or state.stopping:
        return ()
    cell_id = recipe.spec.cell.id

    def on_line(line: str) -> None:
        state.sink(CellLogged(cell_id, line))

    state.sink(StepStarted(cell_id, GATE_STEP, GATE_STEP))
    try:
        record = state.gate.judge(image_id, on_line)
    except EngineError as error:
        if not client.is_alive(state.engine):
            raise
        return error.lines
    except ImagegenError as error:
        return error.lines
    state.sink(ImageValidated(cell_id, record))
    if not record.passed:
        text = f"`{recipe.spec.tag}` is not what was asked for; its tag was not moved"
        return (text, *failed_checks(record), f"image {image_id}")
    _look_inside(state, image_id, cell_id, on_line)
    state.sink(StepEnded(cell_id, GATE_STEP))
    return ()


def _look_inside(
    state: BuildState, image_id: str, cell_id: str, on_line: Callable[[str], None]
) -> None:
    """Write the SBOMs of an image, and warn about files that its build left in it.

    Neither keeps the image from getting its tag.
    """
    try:
        found = inventory(state.engine, image_id, sizes=False)
        lines = [f"sbom {path}" for path in write_sboms(found, state_folder())]
    except ImagegenError as error:
        on_line(f"no sbom: {error}")
        return
    for left in leftovers(found):
        state.sink(Note(f"warning: {cell_id}: {left}"))
        lines.append(f"warning: {left}")
    for line in lines:
        on_line(line)


def attempts(state: BuildState, once: Callable[[], str], steps: CellSteps) -> str:
    """Run one build and return the image id; retry after a while where the cause may disappear."""
    retrying = Retrying(
        stop=stop_after_attempt(ATTEMPTS),
        wait=wait_exponential(multiplier=2, max=30),
        retry=retry_if_exception(lambda error: _may_heal(state, error)),
        before_sleep=lambda now: steps.again(now.attempt_number + 1, ATTEMPTS),
        reraise=True,
    )
    return retrying(once)


def _may_heal(state: BuildState, error: BaseException) -> bool:
    return (
        isinstance(error, buildkit.StepError)
        and not state.stopping
        and not error.cancelled
        and error.cause in HEALING
    )


def _build_once(state: BuildState, recipe: Recipe, steps: CellSteps) -> str:
    spec, lock = recipe.spec, state.plan.lock
    labels = labels_for(
        recipe,
        state.bases[base_of(spec).id],
        {part: state.parts[part] for part in recipe.parts},
        gated=state.gate is not None,
        lock=lock.digest(base_of(spec).id) if lock else "",
    )
    dockerfile = labelled((lock.recipe(recipe) if lock else recipe).dockerfile, recipe)
    no_cache = state.options.force
    if not no_cache:
        export_shared(state, recipe, dockerfile, steps)
    request = request_of(state, recipe, dockerfile, labels, no_cache)
    return run_request(state, recipe, request, steps)
