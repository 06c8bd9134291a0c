"""Predict how long a running build will take, from what its steps are expected to cost."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from imagegen.events.events import CellEnded, StepStarted
from imagegen.planner.cost import walk

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from imagegen.events.events import Event, Sink
    from imagegen.planner.chain import Chain
    from imagegen.planner.cost import Step

LEAST_SHARE = 0.05
"""Of a step that takes longer than predicted, this much is said to be left until it ends."""


def with_time_left(sink: Sink, left: TimeLeft) -> Sink:
    """Add to the events of a build what is left of it, and hand them on."""

    def emit(event: Event) -> None:
        if isinstance(event, StepStarted) and event.at:
            size = left.reached(event.cell, event.at.component)
            event = replace(event, layer_bytes=size, left_seconds=left.seconds())
        elif isinstance(event, CellEnded):
            left.done(event.cell, well=event.record.outcome in ("built", "up-to-date"))
            event = replace(event, left_seconds=left.seconds())
        sink(event)

    return emit


class TimeLeft:
    """What is left of a build, from where each cell is. Any thread may call any method."""

    def __init__(
        self,
        trees: Mapping[str, Sequence[Step]],
        jobs: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._jobs, self._clock, self._lock = max(1, jobs), clock, threading.Lock()
        self._seconds: dict[tuple[str, Chain], float] = {}
        self._paths: dict[str, list[tuple[str, Chain]]] = {}
        self._begun: dict[tuple[str, Chain], float] = {}
        self._sizes: dict[tuple[str, Chain], int] = {}
        for os_id, steps in trees.items():
            for step in walk(steps):
                key = (os_id, step.chain)
                self._seconds[key] = step.cost.seconds
                self._sizes[key] = step.cost.size_bytes
                for cell in step.cells:
                    self._paths.setdefault(cell, []).append(key)

    def reached(self, cell: str, component: str) -> int:
        """A cell has come to a component: what is below is done. The layer's predicted bytes."""
        with self._lock:
            path = self._paths.get(cell, [])
            at = next((i for i, key in enumerate(path) if key[1][-1][0] == component), None)
            if at is None:
                return 0
            for key in path[:at]:
                self._seconds.pop(key, None)
            self._begun.setdefault(path[at], self._clock())
            return self._sizes[path[at]]

    def done(self, cell: str, *, well: bool) -> None:
        """A cell has come to its end; what it owed alone is not owed any more if it failed."""
        with self._lock:
            path = self._paths.pop(cell, [])
            owed = {key for other in self._paths.values() for key in other}
            for key in path:
                if well or key not in owed:
                    self._seconds.pop(key, None)

    def seconds(self) -> float:
        """At least so long: the longest way of one cell, or all work side by side."""
        with self._lock:
            left = {key: self._left(key) for key in self._seconds}
            longest = max(
                (sum(left.get(key, 0.0) for key in path) for path in self._paths.values()),
                default=0.0,
            )
            return max(longest, sum(left.values()) / self._jobs)

    def _left(self, key: tuple[str, Chain]) -> float:
        whole = self._seconds[key]
        begun = self._begun.get(key)
        return whole if begun is None else max(whole - (self._clock() - begun), LEAST_SHARE * whole)
