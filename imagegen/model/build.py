"""Define the record of a cell's build."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Outcome = Literal["built", "up-to-date", "failed", "cancelled", "blocked"]


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
