"""Define the options of a build, which the command line makes once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.model.cell import BaseMode


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
