"""Send the build of one cell to the engine, and follow its events."""

from __future__ import annotations

import json
import uuid
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from imagegen.engine.builds import buildkit
from imagegen.engine.builds.context import pack_context
from imagegen.engine.builds.vertex_events import VertexEvent, VertexStarted
from imagegen.engine.images import local_images as images
from imagegen.errors import EngineError
from imagegen.events.events import CellWaits
from imagegen.model.build import EXPORT_STEP
from imagegen.model.image import base_alias, base_of
from imagegen.model.labels import (
    LABEL_BASE,
    LABEL_CELL,
    LABEL_CONTRACT,
    LABEL_LOCK,
    LABEL_MATRIX,
    LABEL_PARTS,
    LABEL_RECIPE,
    LABEL_UNTIL,
    LABEL_UNVERIFIED,
    LABEL_VALIDATED,
)
from imagegen.model.recipe import UNVERIFIED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from imagegen.builder.cell_steps import CellSteps
    from imagegen.builder.prepare import BuildState
    from imagegen.engine.builds.context import HostFile
    from imagegen.model.recipe import Part, Recipe


def request_of(
    state: BuildState,
    recipe: Recipe,
    dockerfile: str,
    labels: Mapping[str, str],
    no_cache: bool,
    target: str = "",
) -> buildkit.BuildRequest:
    """Make the request for one attempt of a build."""
    network = state.networks[base_of(recipe.spec).id]
    parts = [state.parts[part] for part in recipe.parts]
    return buildkit.BuildRequest(
        context=pack_context(dockerfile, [*recipe.files, *network.files], parts),
        build_id=uuid.uuid4().hex,
        labels=labels,
        buildargs={"BASE": base_alias(base_of(recipe.spec)), **dict(network.buildargs)},
        target=target,
        no_cache=no_cache,
    )


def run_request(
    state: BuildState,
    recipe: Recipe,
    request: buildkit.BuildRequest,
    steps: CellSteps,
    on_export: Callable[[], None] = lambda: None,
) -> str:
    """Run one build on the engine and return the image id.

    `state.running` has its build id meanwhile, so that a stop of the whole run can cancel it.
    `on_export` is called when its steps are done.
    """
    if state.stopping or state.lost is not None:
        raise buildkit.StepError("", "context canceled")
    cell_id = recipe.spec.cell.id
    state.running[cell_id] = request.build_id
    try:
        follow = partial(_follow, state, cell_id, steps, on_export)
        return buildkit.build(state.engine, request, follow)
    finally:
        state.running.pop(cell_id, None)


def _follow(
    state: BuildState,
    cell_id: str,
    steps: CellSteps,
    on_export: Callable[[], None],
    event: VertexEvent,
) -> None:
    """Handle an event of the engine; let another build begin when this one's steps are done."""
    steps.event(event)
    if isinstance(event, VertexStarted) and event.name.startswith(EXPORT_STEP):
        on_export()
        state.working.discard(cell_id)


def export_shared(state: BuildState, recipe: Recipe, dockerfile: str, steps: CellSteps) -> None:
    """Build an image that ends with the large layer of all cells, if this cell exports that layer.

    The image has no tag. `remove_exported` removes it when the cells' own images have the layer.
    """
    cell_id = recipe.spec.cell.id
    layer = state.export.own(cell_id)
    if layer is None:
        return

    def on_export() -> None:
        state.export.made(layer)
        text = f"packs {layer.component} for {len(layer.above)} images"
        state.sink(CellWaits(cell_id, text))

    request = request_until(state, recipe, dockerfile, layer.component, False)
    state.exported.append(run_request(state, recipe, request, steps, on_export))
    steps.steps_done()
    state.export.end(cell_id)
    state.working.add(cell_id)


def remove_exported(state: BuildState) -> None:
    """Remove the images that `export_shared` made.

    Where the engine is gone they stay; `imagegen prune` removes them later.
    """
    with suppress(EngineError):
        while state.exported:
            images.remove(state.engine, state.exported.pop())


GATED = "the tag waits for validate --static"
"""Value of a label that is set before the gate decides. An image that the gate refuses keeps it,
and has no tag.
"""


def labels_for(
    recipe: Recipe, base_id: str, files: Mapping[Part, HostFile], *, gated: bool, lock: str = ""
) -> dict[str, str]:
    """Make the labels of one build.

    `files` are the files of its parts on this host. `lock` is the digest of the lock that the build
    must follow, if there is one.
    """
    spec = recipe.spec
    labels = {
        LABEL_RECIPE: recipe.digest,
        LABEL_CELL: spec.cell.name,
        LABEL_MATRIX: spec.cell.matrix,
        LABEL_BASE: base_id,
        LABEL_CONTRACT: json.dumps(recipe.contract, sort_keys=True),
        LABEL_VALIDATED: GATED if gated else "not validated: --no-validate",
    }
    if recipe.parts:
        sums = {str(part): files[part].sha256 for part in recipe.parts}
        labels[LABEL_PARTS] = json.dumps(sums, sort_keys=True)
    if lock:
        labels[LABEL_LOCK] = lock
    loose = [str(part) for part in recipe.parts if part.sha256 == UNVERIFIED]
    if loose:
        labels[LABEL_UNVERIFIED] = ", ".join(loose)
    return labels


UNTIL_STAGE = "imagegen-until"
"""The stage that closes an image in the middle of a recipe; no component can have this name."""


def request_until(
    state: BuildState, recipe: Recipe, dockerfile: str, stage: str, no_cache: bool
) -> buildkit.BuildRequest:
    """Make the request for an image that ends with a stage of the cell's recipe.

    Its last instruction is its label: that tells it from images that others derive from it.
    """
    cell = recipe.spec.cell
    labels = {LABEL_UNTIL: f"{cell.id} {stage}", LABEL_CELL: cell.name, LABEL_MATRIX: cell.matrix}
    closing = f'FROM {stage} AS {UNTIL_STAGE}\nLABEL {LABEL_UNTIL}="{labels[LABEL_UNTIL]}"\n'
    return request_of(state, recipe, f"{dockerfile}{closing}", labels, no_cache, UNTIL_STAGE)
