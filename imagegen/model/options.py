"""The options of a build, made once at the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.model.cell import BaseMode


@dataclass(frozen=True)
class BuildOptions:
    """What a user asks of a build. `cells` are patterns, all cells without one.

    `jobs` is the number of builds at a time, None for as many as the engine carries; `gate` says
    whether an image is validated before its tag moves; `again` is the command that builds this
    matrix, empty for the one of its name.
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
