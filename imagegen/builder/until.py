"""Build one cell up to a component, without a tag, to repeat a step or to look around before it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from imagegen.builder.cell import attempts, steps_of
from imagegen.builder.cell_request import request_until, run_request
from imagegen.builder.cell_steps import origin_of
from imagegen.builder.prepare import prepare
from imagegen.engine.builds import buildkit
from imagegen.errors import BuildError, ConfigError
from imagegen.events.events import CellEnded, CellStarted, StageReached
from imagegen.renderer.dockerfile import until_before
from imagegen.text import short_step

if TYPE_CHECKING:
    from imagegen.builder.cell_steps import CellSteps
    from imagegen.builder.plan import BuildPlan
    from imagegen.builder.prepare import BuildState
    from imagegen.engine.client import Engine
    from imagegen.events.events import Sink
    from imagegen.model.build import BuildOptions, BuildRecord
    from imagegen.model.recipe import Recipe


@dataclass(frozen=True)
class Reached:
    """Hold the image after the component; or, with `failed`, the image just before `step`.

    `image_id` is empty where the first step of all failed, so that there is no image before it.
    """

    image_id: str
    failed: BuildRecord | None = None
    step: str = ""


def components_of(recipe: Recipe) -> list[str]:
    """List the components of a recipe in the order of their layers."""
    return list(dict.fromkeys(origin.component for origin in recipe.origins))


def build_until(
    plan: BuildPlan, component: str, engine: Engine, options: BuildOptions, sink: Sink
) -> Reached:
    """Build the stages of the plan's only cell up to and including `component`.

    Raises ConfigError for a component that the cell does not have, and BuildError where its base
    image is not available.
    """
    (item,) = plan.cells
    recipe = item.recipe
    known = components_of(recipe)
    if component not in known:
        raise ConfigError.of(
            f"`{recipe.spec.cell.id}` has no component `{component}`",
            evidence=[f"in the order of layers: {', '.join(known)}"],
        )
    state, baseless = prepare(engine, plan.cells, plan, options, sink)
    recipe = plan.lock.recipe(recipe) if plan.lock else recipe
    for record in baseless:
        raise BuildError.of(f"no base for `{record.cell_id}`", evidence=record.detail)
    return _build(state, recipe, component)


def _build(state: BuildState, recipe: Recipe, component: str) -> Reached:
    steps = steps_of(state, recipe)
    started = time.monotonic()
    state.sink(CellStarted(recipe.spec.cell.id, "--until"))
    try:
        image_id = attempts(state, lambda: _build_once(state, recipe, component, steps), steps)
    except buildkit.StepError as error:
        cause = "cancelled" if error.cancelled else error.cause
        record = steps.failed(cause, steps.evidence(error), time.monotonic() - started)
        reached = Reached(_before(state, recipe, error.step, steps), record, short_step(error.step))
        state.sink(CellEnded(record))
        return reached
    state.sink(StageReached(recipe.spec.cell.id, component, image_id))
    return Reached(image_id)


def _build_once(state: BuildState, recipe: Recipe, component: str, steps: CellSteps) -> str:
    request = _request(state, recipe, recipe.dockerfile, component)
    return run_request(state, recipe, request, steps)


def _before(state: BuildState, recipe: Recipe, step: str, steps: CellSteps) -> str:
    """Build the image just before a step; all its steps are in the cache, so this takes no time."""
    origin = origin_of(recipe, step)
    if origin is None:
        return ""
    cut = until_before(recipe.dockerfile, origin.stage, origin.index)
    request = _request(state, recipe, cut, origin.stage, cached=True)
    return run_request(state, recipe, request, steps)


def _request(
    state: BuildState, recipe: Recipe, dockerfile: str, stage: str, *, cached: bool = False
) -> buildkit.BuildRequest:
    no_cache = state.options.force and not cached
    return request_until(state, recipe, dockerfile, stage, no_cache)
