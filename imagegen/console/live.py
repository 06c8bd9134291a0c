"""Show the builds of a run as a live table: a row for each cell, a bar for each that builds.

The length of a bar is the share of the cell's predicted seconds that is done. No meaning is in a
colour alone.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

from imagegen.console.progress import line_of, percent, text_of_left
from imagegen.console.styles import STYLES
from imagegen.events import events
from imagegen.events.progress import RunProgress
from imagegen.text import clean, human_bytes, human_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rich.console import Console as Screen
    from rich.console import Group, RenderableType
    from rich.table import Table
    from rich.text import Text

    from imagegen.events.events import Event

WIDE = 100
"""The columns from which a terminal gets longer bars and longer words."""

OUTCOME = len("built 0123456789ab in 123 s, 12 of 34 steps cached")
"""The characters that most outcomes need."""

LEAST_NAME = 12
"""The characters that a name keeps in the narrowest terminal."""


def shortened(name: str, width: int) -> str:
    """Take out the middle of a name that is too long: cells often differ at the end of theirs."""
    if len(name) <= width:
        return name
    tail = (width - 1) * 2 // 3
    return f"{name[: width - 1 - tail]}…{name[-tail:]}"


@dataclass
class _Row:
    """Hold what is shown of a cell: since when it builds, its steps that run, its last output.

    `shown` is the engine's name of the step that is shown, empty where no step is.
    """

    began: float
    text: str = ""
    at: events.StepAt | None = None
    shown: str = ""
    last: str = ""
    steps: dict[str, events.StepStarted] = field(default_factory=dict)
    cached: int = 0

    def start(self, step: events.StepStarted) -> None:
        self.steps[step.name] = step
        self._show()

    def stop(self, name: str) -> None:
        self.steps.pop(name, None)
        # What BuildKit does beside the steps of components says less than the step that ended.
        if any(step.at for step in self.steps.values()):
            self._show()

    def say(self, text: str) -> None:
        self.steps.clear()
        self.text, self.at, self.shown, self.last = text, None, "", ""

    def _show(self) -> None:
        """Show the step of the lowest layer, as the others wait for it; else the newest step."""
        newest_first = reversed(self.steps.values())
        step = min(newest_first, key=lambda one: one.at.number if one.at else inf)
        if step.name != self.shown:
            self.text, self.at, self.shown, self.last = step.text, step.at, step.name, ""


class LiveProgress:
    """Draw the table of the cells that build; cells that ended scroll away above it."""

    def __init__(
        self, cells: Sequence[str], screen: Screen, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._screen, self._clock = screen, clock
        self._run, self._lock = RunProgress(clock), threading.Lock()
        self._prefix = _common_matrix(cells)
        self._waiting = dict.fromkeys(cells, "")
        self._rows: dict[str, _Row] = {}
        self._ends = Counter[str]()
        self._longest = max((len(self._name(cell)) for cell in cells), default=0)

    def __call__(self, event: Event) -> None:
        """Take an event, and change what is shown."""
        self._run(event)
        match event:
            case events.Note():
                self._screen.print(event.text, markup=False, highlight=False, soft_wrap=True)
            case events.CellsQueued():
                self._queue(event)
            case events.StageReached():
                self._done(event.cell, "built", line_of(event))
            case events.CellEnded():
                if event.began:
                    self._done(event.cell, event.record.outcome, line_of(event))
            case events.CellsPlanned() | events.Predicted() | events.ImageValidated():
                pass
            case _:
                self._in_row(event)

    def _in_row(self, event: Event) -> None:
        with self._lock:
            match event:
                case events.CellStarted():
                    self._row(event.cell)
                case events.CellWaits() | events.CellRetried():
                    self._row(event.cell).say(clean(event.text))
                case events.StepStarted():
                    self._row(event.cell).start(event)
                case _:
                    self._of_step(event)

    def _of_step(self, event: Event) -> None:
        """Handle what happens to a step of a cell that has not ended."""
        match event:
            case events.StepCached(cell) if cell in self._rows:
                self._rows[cell].stop(event.name)
                self._rows[cell].cached += event.at is not None
            case events.StepEnded(cell) | events.StepFailed(cell) if cell in self._rows:
                self._rows[cell].stop(event.name)
            case events.StepOutput(cell) if cell in self._rows:
                if event.name == self._rows[cell].shown:
                    self._rows[cell].last = clean(event.line)

    def _row(self, cell: str) -> _Row:
        self._waiting.pop(cell, None)
        return self._rows.setdefault(cell, _Row(self._clock()))

    def _queue(self, event: events.CellsQueued) -> None:
        with self._lock:
            for cell in event.cells:
                self._rows.pop(cell, None)
                self._waiting[cell] = f"waits for {event.waits_for}"

    def _done(self, cell: str, outcome: str, text: str) -> None:
        with self._lock:
            self._waiting.pop(cell, None)
            row = self._rows.pop(cell, _Row(self._clock()))
            self._ends[outcome] += 1
        self._screen.print(self._end(cell, row.began, clean(text), outcome), soft_wrap=True)

    def _end(self, cell: str, began: float, text: str, outcome: str) -> Text:
        """Write the end of a cell in one line; a long name is shortened, an outcome never is."""
        from rich.text import Text

        took = f"{human_seconds(self._clock() - began):>7}"
        room = self._screen.width - len(took) - 4
        column = max(LEAST_NAME, min(len(self._prefix) + self._longest, room - OUTCOME))
        name = cell if len(self._prefix) + self._longest <= column else self._name(cell)
        name = shortened(name, max(column, room - len(text)))
        return Text(f"{name:<{column}}  {took}  ").append(text, STYLES.get(outcome, ""))

    def _name(self, cell: str) -> str:
        """Return the name of a cell without its matrix where all cells are of one matrix."""
        return cell.removeprefix(self._prefix)

    def render(self) -> Group:
        """Draw what is on the screen now."""
        from rich.console import Group
        from rich.text import Text

        with self._lock:
            rows, waiting = dict(self._rows), dict(self._waiting)
        if not rows and not waiting:
            return Group()
        left = text_of_left(self._run.left())
        foot = Text(", ".join(filter(None, [*self._counts(len(rows), len(waiting)), left])))
        return Group(self._building(rows), self._waits(waiting, len(rows)), foot)

    def _counts(self, building: int, waiting: int) -> Iterator[str]:
        ready = self._ends["built"] + self._ends["up-to-date"]
        lost = self._ends.total() - ready
        every = building + waiting + ready + lost
        if every > 1:
            yield f"{ready} of {every} ready"
        for count, what in ((lost, "failed"), (building, "building"), (waiting, "waiting")):
            if count:
                yield f"{count} {what}"

    @property
    def _room_for_names(self) -> int:
        return max(LEAST_NAME, min(self._longest, self._screen.width * 3 // 10))

    def _building(self, rows: Mapping[str, _Row]) -> Table:
        """Draw a row for each cell that builds: name, bar, share, time, what it does."""
        from rich.table import Table

        wide, width = self._screen.width >= WIDE, self._room_for_names
        table = Table.grid(padding=(0, 2, 0, 0), expand=True)
        table.add_column(no_wrap=True, min_width=width)
        table.add_column(no_wrap=True)
        table.add_column(no_wrap=True, justify="right")
        table.add_column(no_wrap=True, justify="right", min_width=5)
        table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        for cell, row in rows.items():
            share, late = self._run.share(cell), self._run.late(cell)
            table.add_row(
                shortened(self._name(cell), width),
                _bar(share, 20 if wide else 10, STYLES["late" if late else "built"]),
                percent(share),
                human_seconds(self._clock() - row.began),
                self._what(cell, row, late=late),
            )
        return table

    def _waits(self, waiting: Mapping[str, str], building: int) -> Table:
        """Draw what cells wait for, as far as the screen has room below those that build."""
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 2, 0, 0), expand=True)
        table.add_column(no_wrap=True, min_width=self._room_for_names)
        table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        said = [(cell, why) for cell, why in waiting.items() if why]
        room = max(1, self._screen.height - building - 4)
        shown = said if len(said) <= room else said[: room - 1]
        for cell, why in shown:
            name = shortened(self._name(cell), self._room_for_names)
            table.add_row(name, Text(why.replace(self._prefix, ""), "dim"))
        if len(shown) < len(said):
            table.add_row(f"and {len(said) - len(shown)} more", "")
        return table

    def _what(self, cell: str, row: _Row, *, late: bool) -> Text:
        """Say where a cell is, and the last line of its step, or the step itself."""
        from rich.text import Text

        text, step = Text(), clean(row.text)
        if row.at is not None:
            text.append(f"{row.at} {row.at.component}  ")
            step = step.split("] ", 1)[-1]
        if late:
            # The line below the table says it in full.
            wide = self._screen.width >= WIDE
            text.append("longer than predicted  " if wide else "late  ", STYLES["late"])
        if row.cached:
            text.append(f"{row.cached} cached  ", STYLES["cached"])
        size = self._run.layer_bytes(cell, row.at.component) if row.at else 0
        if size:
            text.append(f"~{human_bytes(size)}  ")
        return text.append(row.last, "dim") if row.last else text.append(step)


def _bar(share: float | None, width: int, style: str) -> RenderableType:
    """Draw a bar of this width; nothing where there is no prediction."""
    from rich.progress_bar import ProgressBar

    if share is None:
        return ""
    return ProgressBar(1.0, share, width, complete_style=style, finished_style=style)


def _common_matrix(cells: Sequence[str]) -> str:
    """Return `cpu/` where all cells are of the matrix cpu; else an empty text."""
    matrices = {cell.partition("/")[0] for cell in cells if "/" in cell}
    return f"{matrices.pop()}/" if len(matrices) == 1 and all("/" in one for one in cells) else ""
