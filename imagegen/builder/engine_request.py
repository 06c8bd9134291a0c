"""What the engine is asked for to make one cell, and how an answer is followed."""

from __future__ import annotations

import uuid
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from imagegen.builder.labels import labels_until
from imagegen.engine.builds import buildkit
from imagegen.engine.builds.context import pack_context
from imagegen.engine.builds.step_events import BuildEvent, StepStarted
from imagegen.engine.images import local_images
from imagegen.errors import EngineError
from imagegen.model.base import base_alias, base_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from imagegen.builder.build_log import BuildLog
    from imagegen.builder.cell import Run
    from imagegen.model.recipe import Recipe

EXPORTING = "exporting to image"
"""BuildKit's name for what comes when all steps are done: layers are packed one after the other."""


def request_of(
    run: Run,
    recipe: Recipe,
    dockerfile: str,
    labels: Mapping[str, str],
    no_cache: bool,
    target: str = "",
) -> buildkit.BuildRequest:
    """What the engine is asked for, good for one attempt."""
    env = run.envs[base_of(recipe.spec).id]
    parts = [run.parts[part] for part in recipe.parts]
    return buildkit.BuildRequest(
        context=pack_context(dockerfile, [*recipe.files, *env.files], parts),
        build_id=uuid.uuid4().hex,
        labels=labels,
        buildargs={"BASE": base_alias(base_of(recipe.spec)), **dict(env.buildargs)},
        target=target,
        no_cache=no_cache,
    )


def run_request(
    run: Run,
    recipe: Recipe,
    request: buildkit.BuildRequest,
    log: BuildLog,
    on_packing: Callable[[], None] = lambda: None,
) -> str:
    """One build on the engine; while it runs, a stop of the run cancels it. `on_packing` is called
    when its steps are done."""
    if run.stopping or run.lost is not None:
        raise buildkit.StepError("", "context canceled")
    cell_id = recipe.spec.cell.id
    run.running[cell_id] = request.build_id
    try:
        follow = partial(_follow, run, cell_id, log, on_packing)
        return buildkit.build(run.engine, request, follow)
    finally:
        run.running.pop(cell_id, None)


def _follow(
    run: Run,
    cell_id: str,
    log: BuildLog,
    on_packing: Callable[[], None],
    event: BuildEvent,
) -> None:
    """Write an event down; a build whose steps are done makes room for another."""
    if isinstance(event, StepStarted) and event.name.startswith(EXPORTING):
        log.event(event)
        on_packing()
        run.working.discard(cell_id)
    else:
        log.event(event)


def pack_shared(run: Run, recipe: Recipe, dockerfile: str, log: BuildLog) -> None:
    """Make the image that ends with the large layer of all cells, if this one packs it.

    It has no tag; `remove_packed` takes it away when the cells' own images hold the layer.
    """
    cell_id = recipe.spec.cell.id
    layer = run.packing.own(cell_id)
    if layer is None:
        return

    def made() -> None:
        run.packing.made(layer)
        run.board.step(cell_id, f"packs {layer.component} for {len(layer.above)} images")

    labels = labels_until(recipe.spec.cell, layer.component)
    request = request_of(run, recipe, dockerfile, labels, False, layer.component)
    run.packed.append(run_request(run, recipe, request, log, made))
    log.steps_done()
    run.packing.end(cell_id)
    run.working.add(cell_id)


def remove_packed(run: Run) -> None:
    """Take the images of `pack_shared` away; `imagegen prune` does it where the engine is gone."""
    with suppress(EngineError):
        while run.packed:
            local_images.remove(run.engine, run.packed.pop())
