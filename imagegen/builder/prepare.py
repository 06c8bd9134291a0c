"""Prepare what the cells of a build share: parts, base images, the settings of this host."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from imagegen.builder.shared_export import SharedExport
from imagegen.engine import client
from imagegen.engine.images.bases import ensure_base
from imagegen.errors import EngineError
from imagegen.events.events import CellsQueued, CellWaits
from imagegen.model.build import BuildRecord
from imagegen.model.image import base_of
from imagegen.sources.mirrors import rewrite_image
from imagegen.sources.supply import supply
from imagegen.validation.gate import Gate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from imagegen.builder.plan import BuildPlan
    from imagegen.builder.up_to_date import Staleness
    from imagegen.config.network import BuildEnv
    from imagegen.engine.builds.context import HostFile
    from imagegen.engine.client import Engine
    from imagegen.events.events import Sink
    from imagegen.model.build import BuildOptions
    from imagegen.model.recipe import Part, Recipe


@dataclass
class BuildState:
    """Hold the state of one running build; any thread may read it.

    `bases` maps the id of a base to its image id, `networks` maps it to the settings that its build
    steps need on this host. `gate` is None where tags move without validation. `running` maps a
    cell to its build id on the engine. `working` are the cells whose steps run now; a cell whose
    image is being exported or validated is not among them. `exported` are the ids of the images
    that were made for a layer that cells share. `stopping` is set when the build ends early. `lost`
    is the error of the engine that died.
    """

    engine: Engine
    plan: BuildPlan
    options: BuildOptions
    sink: Sink
    bases: Mapping[str, str]
    parts: Mapping[Part, HostFile]
    networks: Mapping[str, BuildEnv]
    gate: Gate | None = None
    export: SharedExport = field(default_factory=SharedExport)
    exported: list[str] = field(default_factory=list)
    running: dict[str, str] = field(default_factory=dict)
    working: set[str] = field(default_factory=set)
    stopping: bool = False
    lost: EngineError | None = None


def prepare(
    engine: Engine,
    stale: Sequence[Staleness],
    plan: BuildPlan,
    options: BuildOptions,
    sink: Sink,
) -> tuple[BuildState, list[BuildRecord]]:
    """Prepare what all stale cells share.

    Also returns a record for each cell whose base image is not available. Raises EngineError for an
    engine without BuildKit, the errors of `supply` for parts that are not available, and the error
    of the lock where packages differ from it.
    """
    client.require_buildkit(engine)
    parts = _parts(stale, plan, sink)
    bases, failed = _bases(engine, stale, plan, options, sink)
    networks = _networks(engine, stale, plan, bases)
    state = BuildState(engine, plan, options, sink, bases, parts, networks)
    state.gate = Gate(engine) if options.gate else None
    state.export = SharedExport(plan.shared)
    baseless = [item.recipe for item in stale if base_of(item.recipe.spec).id in failed]
    return state, [_baseless(one, failed[base_of(one.spec).id]) for one in baseless]


def _parts(stale: Sequence[Staleness], plan: BuildPlan, sink: Sink) -> dict[Part, HostFile]:
    users = {part: item.recipe.spec.cell.id for item in stale for part in item.recipe.parts}
    cell = next(iter(users.values()), "")
    on_line = _for_all(sink, cell, stale, "files that build steps need", "")
    return supply(users, plan.store, on_line)


def _for_all(
    sink: Sink, cell: str, stale: Sequence[Staleness], waits_for: str, prefix: str
) -> Callable[[str], None]:
    """Make a function that reports each line at one cell, and once that the others wait too."""
    others = [one.recipe.spec.cell.id for one in stale if one.recipe.spec.cell.id != cell]

    def on_line(line: str) -> None:
        if others:
            sink(CellsQueued(tuple(others), waits_for))
            others.clear()
        sink(CellWaits(cell, prefix + line))

    return on_line


def _networks(
    engine: Engine, stale: Sequence[Staleness], plan: BuildPlan, bases: Mapping[str, str]
) -> dict[str, BuildEnv]:
    """Map the id of each base to the build environment of its cells."""
    if plan.lock is None:
        return dict.fromkeys(bases, plan.network)
    recipes = [item.recipe for item in stale]
    return {
        base_id: plan.lock.environment(
            engine, [one for one in recipes if base_of(one.spec).id == base_id], plan.network
        )
        for base_id in bases
    }


def _bases(
    engine: Engine,
    stale: Sequence[Staleness],
    plan: BuildPlan,
    options: BuildOptions,
    sink: Sink,
) -> tuple[dict[str, str], dict[str, EngineError]]:
    """Map the id of each base to its image id, or to the error that made it unavailable."""
    found: dict[str, str] = {}
    failed: dict[str, EngineError] = {}
    for item in stale:
        base_id = base_of(item.recipe.spec).id
        if base_id in found or base_id in failed:
            continue
        try:
            cell = item.recipe.spec.cell.id
            on_line = _for_all(sink, cell, stale, f"the base image {base_id}", "base: ")
            found[base_id] = _base(engine, item.recipe, plan, options, on_line)
        except EngineError as error:
            failed[base_id] = error
    return found, failed


def _base(
    engine: Engine,
    recipe: Recipe,
    plan: BuildPlan,
    options: BuildOptions,
    on_line: Callable[[str], None],
) -> str:
    spec = recipe.spec
    wanted = base_of(spec)
    base = ensure_base(
        engine,
        wanted,
        options.base or spec.cell.base,
        on_line,
        rewrite_image(wanted.image, plan.store.mirrors),
    )
    return base.id


def _baseless(recipe: Recipe, error: EngineError) -> BuildRecord:
    spec = recipe.spec
    return BuildRecord(
        spec.cell.id, spec.tag, recipe.digest, "failed", cause="base", detail=error.lines
    )
