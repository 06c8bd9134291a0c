"""How the build of a cell ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Outcome = Literal["built", "up-to-date", "failed", "cancelled", "blocked"]

EXPORT_STEP = "exporting to image"
"""BuildKit's name for what comes when all steps are done: layers are packed one after the other."""

GATE_STEP = "validate --static"
"""What is run in a new image before its tag moves."""


@dataclass(frozen=True)
class StepRecord:
    """One step as it ran; `release` of its component, `size_bytes` of the layer, 0 for unknown."""

    name: str
    stage: str
    seconds: float
    cached: bool
    component: str = ""
    release: str = ""
    size_bytes: int = 0


@dataclass(frozen=True)
class BuildRecord:
    """How the build of one cell ended. `cause` groups failures: network, package, disk, …"""

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
