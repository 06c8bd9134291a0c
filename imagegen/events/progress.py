"""Follow a run by its events: how far each cell is, and how long the run will still take.

The predictions come with the event `Predicted`. A step that takes longer than predicted is reported
as late: its remaining time is then unknown, and it counts as nearly done.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from heapq import heapreplace
from math import inf
from typing import TYPE_CHECKING

from imagegen.events import events
from imagegen.model.build import EXPORT_STEP, GATE_STEP

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from imagegen.events.events import Event, PredictedLayer

LATE_SHARE, LATE_SECONDS = 1.2, 1.0
"""A step is late after this share of its predicted seconds plus these seconds."""

HANDOVER_SECONDS = 1.0
"""A cell that begins less than this before another one ends does not get the layers of that one."""

NEARLY = 0.99
"""The share that counts as done of work that takes longer than predicted."""


@dataclass(frozen=True)
class TimeLeft:
    """The least seconds that a run still takes, and the names of the work that is late now."""

    seconds: float
    late: tuple[str, ...] = ()


class _Work:
    """Measure one piece of work of a cell: for how long its steps have run.

    Work whose seconds are unknown counts as nothing and is never late.
    """

    def __init__(self, seconds: float | None) -> None:
        self.seconds, self._known, self.done = seconds or 0.0, seconds is not None, False
        self._ran, self._since = 0.0, 0.0
        self._steps: set[str] = set()

    def start(self, step: str, now: float) -> None:
        if not self._steps:
            self._since = now
        self._steps.add(step)

    def stop(self, step: str, now: float) -> None:
        if step in self._steps:
            self._ran = self.took(now)
            self._since = now
            self._steps.remove(step)

    def begin_again(self, *, from_nothing: bool) -> None:
        self._ran, self.done = 0.0, self.done and not from_nothing
        self._steps.clear()

    def took(self, now: float) -> float:
        return self._ran + (now - self._since if self._steps else 0.0)

    def left(self, now: float) -> float:
        return 0.0 if self.done else max(0.0, self.seconds - self.took(now))

    def behind(self, now: float) -> float:
        return self.seconds if self.done else min(self.took(now), NEARLY * self.seconds)

    def late(self, now: float) -> bool:
        runs = self._known and not self.done and bool(self._steps)
        return runs and self.took(now) > LATE_SHARE * self.seconds + LATE_SECONDS


class _Cell:
    """The work of a cell: its layers by their index in the run, the export, the gate."""

    def __init__(self, predicted: events.PredictedCell, layers: tuple[PredictedLayer, ...]) -> None:
        self.begun = self.exported = False
        self.layers = {number: _Work(layers[number].seconds) for number in predicted.layers}
        self.number_of = {layers[number].component: number for number in predicted.layers}
        self.packed = {number for number in predicted.layers if layers[number].packed}
        self.export, self.gate = _Work(predicted.export_seconds), _Work(predicted.gate_seconds)
        self._others: dict[str, _Work] = {}

    @property
    def works(self) -> dict[str, _Work]:
        """Map the names of all work of the cell, as people read them, to the work."""
        layers = {name: self.layers[number] for name, number in self.number_of.items()}
        return {**layers, **self._others, "the export": self.export, GATE_STEP: self.gate}

    def of_step(self, name: str, at: events.StepAt | None) -> _Work | None:
        """Return the work of a step; a component without a prediction is late at once."""
        if name == GATE_STEP:
            return self.gate
        if name.startswith(EXPORT_STEP):
            return self._packing() or self.export
        if at is None:
            return None
        if at.component in self.number_of:
            return self.layers[self.number_of[at.component]]
        return self._others.setdefault(at.component, _Work(0.0))

    def _packing(self) -> _Work | None:
        """Return the work of the layer that the cell exports by itself now, if it does."""
        at = next((number for number, work in self.layers.items() if not work.done), None)
        return self.layers[at] if at is not None and at in self.packed else None

    def made_up_to(self, component: str) -> set[int]:
        """Mark the layer of a component and all below it as made; return their indices."""
        numbers = list(self.layers)
        count = numbers.index(self.number_of[component]) + 1 if component in self.number_of else 0
        for number in numbers[:count]:
            self.layers[number].done = True
        return set(numbers[:count])

    def layers_made(
        self, start: float, made: Mapping[int, tuple[float, float]], now: float
    ) -> dict[int, float]:
        """Map each layer of the cell to the seconds from now until it is made.

        `made` has the layers of other cells: until when they can be shared, and from when on.
        """
        at, times = start, dict[int, float]()
        for number, work in self.layers.items():
            until, there = made.get(number, (-inf, 0.0))
            own = at + work.left(now)
            at = min(own, max(at, there)) if start < until else own
            times[number] = at
        return times


class RunProgress:
    """Takes the events of a run, and says how far it is. Any thread may call any method."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._predicted = events.Predicted((), ())
        self._cells: dict[str, _Cell] = {}
        self._made: set[int] = set()
        self._begun = False

    def __call__(self, event: Event) -> None:
        """Take an event of the run."""
        with self._lock:
            match event:
                case events.Predicted():
                    self._predicted = event
                    self._cells = {one.cell: _Cell(one, event.layers) for one in event.cells}
                case events.CellEnded():
                    self._cells.pop(event.cell, None)
                case events.CellStarted() | events.CellRetried() | events.StepStarted():
                    self._starts(event)
                case events.StepCached() | events.StepEnded() | events.StepFailed():
                    self._stops(event)

    def left(self) -> TimeLeft | None:
        """Return what is left of the run; None before its first cell begins."""
        with self._lock:
            if not self._begun:
                return None
            now = self._clock()
            found = (cell.works.items() for cell in self._cells.values())
            late = dict.fromkeys(name for works in found for name, one in works if one.late(now))
            return TimeLeft(self._seconds(now), tuple(late))

    def share(self, cell_id: str) -> float | None:
        """Return the share of a cell's predicted seconds that is done, 0 to 1; None for unknown."""
        with self._lock:
            now, cell = self._clock(), self._cells.get(cell_id)
            works = [*cell.works.values()] if cell else []
            whole = sum(one.seconds for one in works)
            return sum(one.behind(now) for one in works) / whole if whole else None

    def late(self, cell_id: str) -> bool:
        """Say whether the present work of a cell takes longer than predicted."""
        with self._lock:
            now, cell = self._clock(), self._cells.get(cell_id)
            return cell is not None and any(one.late(now) for one in cell.works.values())

    def layer_bytes(self, cell_id: str, component: str) -> int:
        """Return the predicted size of a layer, 0 where it is unknown."""
        with self._lock:
            cell = self._cells.get(cell_id)
            number = cell.number_of.get(component) if cell else None
            return 0 if number is None else self._predicted.layers[number].size_bytes

    def _starts(self, event: events.CellStarted | events.CellRetried | events.StepStarted) -> None:
        cell = self._cells.get(event.cell)
        if cell is None:
            return
        if isinstance(event, events.CellStarted):
            cell.begun = self._begun = True
        elif isinstance(event, events.CellRetried):
            for one in cell.works.values():
                one.begin_again(from_nothing=self._predicted.remade)
        elif (work := cell.of_step(event.name, event.at)) is not None:
            if work is cell.gate:
                # The gate needs all layers, even those that the engine has not reported.
                for component in [*cell.number_of][-1:]:
                    self._made |= cell.made_up_to(component)
            if work in (cell.export, cell.gate):
                cell.exported = all(one.done for one in cell.layers.values())
            elif event.at and event.at.last:
                self._unmake(cell, event.at.component)
            work.start(event.name, self._clock())

    def _unmake(self, cell: _Cell, component: str) -> None:
        """Mark a layer as not made: its last step runs in several pieces."""
        number = cell.number_of.get(component)
        if number is not None and number not in cell.packed:
            cell.layers[number].done = False
            self._made.discard(number)

    def _stops(self, event: events.StepCached | events.StepEnded | events.StepFailed) -> None:
        cell = self._cells.get(event.cell)
        if cell is None:
            return
        for work in cell.works.values():
            work.stop(event.name, self._clock())
        if isinstance(event, events.StepFailed):
            return
        if event.at is None:
            self._ended_of_none(cell, event.name)
        elif event.at.last:
            number = cell.number_of.get(event.at.component)
            if number not in cell.packed or isinstance(event, events.StepCached):
                self._made |= cell.made_up_to(event.at.component)

    def _ended_of_none(self, cell: _Cell, name: str) -> None:
        """Handle the end of an export or of the gate."""
        work = cell.of_step(name, None)
        if work is None:
            return
        packed = next((number for number, one in cell.layers.items() if one is work), None)
        if packed is not None:
            self._made |= cell.made_up_to(self._predicted.layers[packed].component)
        else:
            work.done = cell.exported

    def _seconds(self, now: float) -> float:
        """Simulate the rest of the run: cells begin in order, make layers, and are exported."""
        slots, flight = [0.0] * self._predicted.jobs, [0.0] * self._predicted.in_flight
        remade = self._predicted.remade
        made = {} if remade else dict.fromkeys(self._made, (inf, 0.0))
        for cell in sorted(self._cells.values(), key=lambda one: not one.begun):
            start = 0.0 if cell.begun else max(slots[0], flight[0])
            times = cell.layers_made(start, made, now)
            done = max(times.values(), default=start)
            exported = done + cell.export.left(now)
            if not cell.exported:
                heapreplace(slots, done)
            heapreplace(flight, exported + cell.gate.left(now))
            until = exported - HANDOVER_SECONDS if remade else inf
            for number, at in times.items():
                if made.get(number, (-inf, 0.0))[0] < until:
                    made[number] = (until, at)
        return max(flight)
