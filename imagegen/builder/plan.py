"""What a build is given, and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from imagegen.builder.up_to_date import Staleness
    from imagegen.config.network import BuildEnv
    from imagegen.errors import ImagegenError
    from imagegen.model.build import BuildRecord
    from imagegen.planner.chain import SharedLayer
    from imagegen.sources.locked_build import LockedBuild
    from imagegen.sources.supply import Store


@dataclass(frozen=True)
class BuildPlan:
    """All cells of a build, stale or up to date, in the order of their records.

    `jobs` is the number of builds at a time; `store` has the parts that recipes mount; `network`
    is what this host's network needs of a build step; `logs` is the folder of the cells' log files,
    `locks` the folder of the files that keep other processes from the same cell; `lock` is what the
    builds are held to; `shared` are the large new layers that all cells of an OS stand on, the
    lower ones first; `last_good` has the last build of a cell that got its tag.
    """

    cells: tuple[Staleness, ...]
    jobs: int
    store: Store
    network: BuildEnv
    logs: Path
    locks: Path
    lock: LockedBuild | None = None
    shared: tuple[SharedLayer, ...] = ()
    last_good: Mapping[str, BuildRecord] = field(default_factory=dict)


@dataclass(frozen=True)
class BuildResult:
    """A record for each cell, begun or not; `broken` is what ended the build early."""

    records: tuple[BuildRecord, ...]
    broken: ImagegenError | None = None
