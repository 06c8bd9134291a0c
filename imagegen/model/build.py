"""Define the options of a build, which the command line makes once, and the record of a build."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.model.cell import BaseMode

Outcome = Literal["built", "up-to-date", "failed", "cancelled", "blocked"]

EXPORT_STEP = "exporting to image"
"""BuildKit's name for what comes when all steps are done: layers are packed one after the other."""

GATE_STEP = "validate --static"
"""What is run in a new image before its tag moves."""


@dataclass(frozen=True)
class BuildOptions:
    """The options of a build.

    `cells` are patterns; without one, all cells are meant. `jobs` is the number of builds at a
    time, None for as many as the engine can carry. `gate` says whether an image is validated before
    its tag moves. `again` is the command that builds this matrix, empty where the name of the
    matrix suffices.
    """

    matrix: str = ""
    cells: tuple[str, ...] = ()
    overlay: Path | None = None
    jobs: int | None = None
    force: bool = False
    gate: bool = True
    locked: bool = False
    measured: bool = False
    check_disk: bool = True
    allow_unverified: bool = False
    ca_bundle: Path | None = None
    base: BaseMode | None = None
    again: str = ""


@dataclass(frozen=True)
class StepRecord:
    """One step as it ran.

    `release` is that of the component; `size_bytes` is the size of the layer, 0 where unknown.
    """

    name: str
    stage: str
    seconds: float
    cached: bool
    component: str = ""
    release: str = ""
    size_bytes: int = 0


@dataclass(frozen=True)
class BuildRecord:
    """How the build of one cell ended.

    `cause` groups failures: network, package, disk, …
    """

    cell_id: str
    tag: str
    recipe: str
    outcome: Outcome
    image_id: str = ""
    seconds: float = 0.0
    size_bytes: int = 0
    steps: tuple[StepRecord, ...] = ()
    cause: str = ""
    detail: tuple[str, ...] = ()
    log: str = ""
