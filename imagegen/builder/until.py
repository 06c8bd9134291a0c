"""One cell up to one of its components, without a tag: to repeat a step, to look before it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from imagegen.builder.build_log import BuildLog, origin_of, short
from imagegen.builder.cell import attempts, log_path
from imagegen.builder.engine_request import request_of, run_request
from imagegen.builder.labels import labels_until
from imagegen.builder.scheduler import prepare
from imagegen.builder.stale import Staleness
from imagegen.engine.builds import buildkit
from imagegen.errors import BuildError, ConfigError
from imagegen.renderer.dockerfile import until_before

if TYPE_CHECKING:
    from imagegen.builder.cell import BuildOptions, Run
    from imagegen.console.progress import Board
    from imagegen.engine.client import Engine
    from imagegen.model.build import BuildRecord
    from imagegen.model.recipe import Recipe


@dataclass(frozen=True)
class Reached:
    """How far it came: the image after the component, or, with `failed`, the one before `step`.

    `image_id` is empty where the first step of all failed and nothing stands before it.
    """

    image_id: str
    failed: BuildRecord | None = None
    step: str = ""


def components_of(recipe: Recipe) -> list[str]:
    """The components of a recipe in the order of their layers."""
    return list(dict.fromkeys(origin.component for origin in recipe.origins))


def build_until(
    engine: Engine, recipe: Recipe, component: str, options: BuildOptions, board: Board
) -> Reached:
    """Build a cell's stages up to and with `component`.

    Raises ConfigError for a component that the cell does not have, BuildError without its base.
    """
    known = components_of(recipe)
    if component not in known:
        raise ConfigError.of(
            f"`{recipe.spec.cell.id}` has no component `{component}`",
            evidence=[f"in the order of layers: {', '.join(known)}"],
        )
    run, without = prepare(engine, [Staleness(recipe, "--until", None)], options, board)
    recipe = options.lock.recipe(recipe) if options.lock else recipe
    for _, record in without:
        raise BuildError.of(f"no base for `{record.cell_id}`", evidence=record.detail)
    log = BuildLog(log_path(options, recipe), recipe, board, options.again)
    started = time.monotonic()
    with log:
        try:
            image_id = attempts(run, lambda: _once(run, recipe, component, log), log)
        except buildkit.StepError as error:
            cause = "cancelled" if error.cancelled else error.cause
            record = log.failed(cause, log.evidence(error), time.monotonic() - started)
            return Reached(_before(run, recipe, error.step, log), record, short(error.step))
    board.done(recipe.spec.cell.id, "built", f"{component} is {image_id[7:19]}")
    return Reached(image_id)


def _once(run: Run, recipe: Recipe, component: str, log: BuildLog) -> str:
    return run_request(run, recipe, _request(run, recipe, recipe.dockerfile, component), log)


def _before(run: Run, recipe: Recipe, step: str, log: BuildLog) -> str:
    """The image that the step met: all of it is in the cache, so this takes no time."""
    origin = origin_of(recipe, step)
    if origin is None:
        return ""
    cut = until_before(recipe.dockerfile, origin.stage, origin.index)
    return run_request(run, recipe, _request(run, recipe, cut, origin.stage, cached=True), log)


def _request(
    run: Run, recipe: Recipe, dockerfile: str, stage: str, *, cached: bool = False
) -> buildkit.BuildRequest:
    no_cache = run.options.force and not cached
    labels = labels_until(recipe.spec.cell, stage)
    return request_of(run, recipe, dockerfile, labels, no_cache, stage)
