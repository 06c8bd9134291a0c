"""Read from the journal what steps, exports and gates took on this engine.

Steps that came from the cache do not count.
"""

from __future__ import annotations

from collections import defaultdict
from math import inf
from statistics import median
from typing import TYPE_CHECKING

from imagegen.journal.database import JournalFile
from imagegen.model.build import EXPORT_STEP, GATE_STEP

if TYPE_CHECKING:
    from collections.abc import Mapping

TELLING_BYTES = 100_000_000
"""An export of fewer new bytes than this does not show how fast the engine exports."""


class CostQueries(JournalFile):
    """Read what was measured. Every method may raise ConfigError."""

    def step_costs(self) -> Mapping[tuple[str, str], tuple[float, int]]:
        """Map (component, release) to the median seconds and layer bytes of its steps.

        They were measured on this engine. Seconds count only builds in which none of its steps was
        cached; 0 where there is no such build.
        """
        sql = (
            "SELECT component, release, SUM(steps.seconds), SUM(steps.size_bytes), MAX(cached)"
            " FROM steps JOIN builds ON builds.id = build_id"
            " WHERE outcome = 'built' AND component != '' AND name NOT LIKE '%] FROM %'"
            " GROUP BY build_id, component, release"
        )
        times: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
        sizes: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        with self._use() as db:
            for component, release, seconds, size, cached in db.execute(sql):
                if size:
                    sizes[component, release].append(size)
                if not cached:
                    times[component, release].append(seconds)
        return {
            key: (median(times.get(key, [0.0])), round(median(sizes.get(key, [0]))))
            for key in {*times, *sizes}
        }

    def gate_seconds(self) -> Mapping[str, float]:
        """Map each cell to the median seconds of the gate in its builds.

        Older builds, which have no step for the gate, count with the seconds of `validate`.
        """
        sql = (
            "SELECT cell_id, steps.seconds, validations.seconds FROM builds"
            " LEFT JOIN steps ON steps.build_id = builds.id AND steps.name = ?"
            " LEFT JOIN validations ON validations.run_id = builds.run_id"
            " AND validations.image_id = builds.image_id AND tier = 'static'"
            " WHERE outcome = 'built'"
        )
        times: defaultdict[str, list[float]] = defaultdict(list)
        with self._use() as db:
            for cell, gate, validation in db.execute(sql, [GATE_STEP]):
                seconds = validation if gate is None else gate
                if seconds is not None:
                    times[cell].append(seconds)
        return {cell: median(seconds) for cell, seconds in times.items()}

    def export_speed(self) -> float | None:
        """Return the median bytes a second of the exports of large new layers, if there are any.

        Where several cells of a run have the same new layers, one of them exports these, and the
        others end at once. So only the slowest export of a run counts.
        """
        sql = (
            "SELECT run_id, SUM(CASE WHEN name LIKE :export THEN steps.seconds ELSE 0 END) AS took,"
            " SUM(CASE WHEN cached THEN 0 ELSE steps.size_bytes END) AS made"
            " FROM steps JOIN builds ON builds.id = build_id WHERE outcome = 'built'"
            " GROUP BY build_id HAVING took > 0 AND made >= :least"
        )
        speeds = dict[int, float]()
        with self._use() as db:
            for run, took, made in db.execute(
                sql, {"export": EXPORT_STEP + "%", "least": TELLING_BYTES}
            ):
                speeds[run] = min(made / took, speeds.get(run, inf))
        return median(speeds.values()) if speeds else None
