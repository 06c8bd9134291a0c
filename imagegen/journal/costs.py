"""What steps, exports and gates took on this engine, for the prediction of others.

What came from the cache says nothing of what a step takes.
"""

from __future__ import annotations

from collections import defaultdict
from math import inf
from statistics import median
from typing import TYPE_CHECKING

from imagegen.journal.database import JournalFile
from imagegen.model.build import EXPORT_STEP

if TYPE_CHECKING:
    from collections.abc import Mapping

TELLING_BYTES = 100_000_000
"""The export of fewer new bytes than this says nothing of how fast an engine exports."""


class CostQueries(JournalFile):
    """Reads the journal for what was measured. Every method may raise ConfigError."""

    def step_costs(self) -> Mapping[tuple[str, str], tuple[float, int]]:
        """(component, release) -> median seconds and layer bytes of its steps on this engine.

        Seconds are of the builds that had none of its steps cached; 0 where there is none.
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
        """Cell -> median seconds of the gate in its builds."""
        sql = (
            "SELECT cell_id, validations.seconds FROM builds JOIN validations"
            " ON validations.image_id = builds.image_id AND validations.run_id = builds.run_id"
            " WHERE outcome = 'built' AND tier = 'static'"
        )
        times: defaultdict[str, list[float]] = defaultdict(list)
        with self._use() as db:
            for cell, seconds in db.execute(sql):
                times[cell].append(seconds)
        return {cell: median(seconds) for cell, seconds in times.items()}

    def export_speed(self) -> float | None:
        """Median bytes a second of the exports of large new layers; None where there was none.

        Of builds side by side with the same new layers one exports them, and the others are done at
        once: in each run the slowest counts.
        """
        sql = (
            "SELECT run_id, SUM(CASE WHEN name = :export THEN steps.seconds ELSE 0 END) AS took,"
            " SUM(CASE WHEN cached THEN 0 ELSE steps.size_bytes END) AS made"
            " FROM steps JOIN builds ON builds.id = build_id WHERE outcome = 'built'"
            " GROUP BY build_id HAVING took > 0 AND made >= :least"
        )
        speeds = dict[int, float]()
        with self._use() as db:
            for run, took, made in db.execute(sql, {"export": EXPORT_STEP, "least": TELLING_BYTES}):
                speeds[run] = min(made / took, speeds.get(run, inf))
        return median(speeds.values()) if speeds else None
