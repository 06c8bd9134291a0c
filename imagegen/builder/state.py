"""What the cells of one build share while it runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from imagegen.builder.shared_export import SharedExport

if TYPE_CHECKING:
    from collections.abc import Mapping

    from imagegen.builder.plan import BuildPlan
    from imagegen.config.network import BuildEnv
    from imagegen.engine.builds.context import HostFile
    from imagegen.engine.client import Engine
    from imagegen.errors import EngineError
    from imagegen.events.events import Sink
    from imagegen.model.options import BuildOptions
    from imagegen.model.part import Part
    from imagegen.validation.gate import Gate


@dataclass
class BuildState:
    """One build that runs. Any thread may read it.

    `bases` maps the id of a base to its image id, `networks` to what its build steps need of this
    host. `gate` is None where tags move without one. `running` maps a cell to its build on the
    engine; `working` are the cells whose steps run: one whose image is exported or judged is none
    of them. `exported` are the images that were made for a layer that cells share. `stopping` is
    set when the build ends early, `lost` is how the engine died, if it did.
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
