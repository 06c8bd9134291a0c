"""Define the input and the result of a build."""

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
    """Hold all cells of a build, stale or up to date, in the order of their records.

    `jobs` is the number of builds at a time. `store` has the parts that recipes mount. `network`
    has the settings that build steps need for the network of this host. `logs` is the folder of the
    cells' log files. `locks` is the folder of the lock files that keep two processes from building
    the same cell. `lock` is the lock that the builds must follow. `shared` are the large new layers
    that all cells of an OS have in common, the lower ones first. `last_good` maps a cell to its
    last build that got its tag.
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
    """Hold a record for each cell, and in `broken` the error that ended the build early."""

    records: tuple[BuildRecord, ...]
    broken: ImagegenError | None = None
