"""Progress of builds side by side: lines for logs, events for programs, a table that lives."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from imagegen.text import clean, human_bytes, human_seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console as Screen
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from imagegen.console.console import Console
    from imagegen.model.build import BuildRecord

STYLES = {"built": "green", "up-to-date": "green", "failed": "bold red"}


@dataclass(frozen=True)
class StepAt:
    """Where a cell is: the component that is being built, its step and how many there are."""

    component: str
    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


class TimeLeft(Protocol):
    """What a board asks of the planner's estimate."""

    def reached(self, cell: str, component: str) -> int: ...

    def done(self, cell: str, *, well: bool) -> None: ...

    def seconds(self) -> float: ...


class Board:
    """Here a plain line for each step. Every method may be called from any thread."""

    def __init__(self, console: Console, cells: Sequence[str]) -> None:
        self._console, self._began = console, time.monotonic()
        self._width = max(map(len, cells), default=0)
        self._left: TimeLeft | None = None

    def expect(self, left: TimeLeft) -> None:
        """From now on the time that is left is told too."""
        self._left = left

    def step(self, cell: str, text: str, at: StepAt | None = None) -> None:
        """The cell has come to this step."""
        self._reached(cell, at)
        self._say(cell, f"{at}  {text}{self._remaining()}" if at else text)

    def log(self, cell: str, line: str) -> None:
        """One line of output of the cell's step. Nothing here: the cell's log file has it."""

    def done(self, cell: str, outcome: str, text: str) -> None:
        """The cell has come to its end; `outcome` is one of `model.Outcome`, `text` says it."""
        self._ended(cell, outcome)
        self._say(cell, text or outcome)

    def up_to_date(self, record: BuildRecord) -> None:
        """Nothing has to be done for the cell of this record."""
        said = f"up to date, {record.image_id[7:19]}"
        self.done(record.cell_id, record.outcome, said)

    def _say(self, cell: str, text: str) -> None:
        since = f"{time.monotonic() - self._began:.1f}s"
        self._console.note(f"{since:>8}  {cell:<{self._width}}  {clean(text)}")

    def _reached(self, cell: str, at: StepAt | None) -> int:
        return self._left.reached(cell, at.component) if self._left and at else 0

    def _ended(self, cell: str, outcome: str) -> None:
        if self._left:
            self._left.done(cell, well=outcome in ("built", "up-to-date"))

    def _remaining(self) -> str:
        seconds = self._left.seconds() if self._left else 0.0
        return f"  (about {human_seconds(seconds)} left)" if seconds else ""


class JsonBoard(Board):
    """An event for each step, line and end."""

    def step(self, cell: str, text: str, at: StepAt | None = None) -> None:
        size = self._reached(cell, at)
        more: dict[str, Any] = {}
        if at:
            more = {"component": at.component, "step": at.number, "steps": at.of}
        if at and self._left:
            more |= {"layer_bytes": size, "left_seconds": round(self._left.seconds(), 1)}
        self._console.event("step", cell=cell, text=text, **more)

    def log(self, cell: str, line: str) -> None:
        self._console.event("log", cell=cell, text=line)

    def done(self, cell: str, outcome: str, text: str) -> None:
        self._ended(cell, outcome)
        self._console.event("done", cell=cell, outcome=outcome, text=text)


@dataclass
class _Row:
    """One build that runs: when it began, where it is, its layer's predicted bytes, last line."""

    began: float
    text: str
    at: StepAt | None = None
    size_bytes: int = 0
    last: str = ""


class LiveBoard(Board):
    """A row for each image that builds; what is done scrolls away above."""

    def __init__(self, console: Console, cells: Sequence[str], screen: Screen) -> None:
        super().__init__(console, cells)
        self._screen = screen
        self._lock = threading.Lock()
        self._waiting = set(cells)
        self._rows: dict[str, _Row] = {}

    def step(self, cell: str, text: str, at: StepAt | None = None) -> None:
        size = self._reached(cell, at)
        with self._lock:
            self._waiting.discard(cell)
            began = self._rows[cell].began if cell in self._rows else time.monotonic()
            self._rows[cell] = _Row(began, clean(text), at, size)

    def log(self, cell: str, line: str) -> None:
        with self._lock:
            if cell in self._rows:
                self._rows[cell].last = clean(line)

    def done(self, cell: str, outcome: str, text: str) -> None:
        self._ended(cell, outcome)
        with self._lock:
            self._waiting.discard(cell)
            row = self._rows.pop(cell, _Row(time.monotonic(), ""))
        line = self._line(cell, row.began, clean(text or outcome), STYLES.get(outcome, ""))
        self._screen.print(line, soft_wrap=True)

    def _line(self, cell: str, began: float, text: str, style: str = "") -> Text:
        from rich.text import Text

        took = human_seconds(time.monotonic() - began)
        line = Text(f"{cell:<{self._width}}  {took:>7}  ", no_wrap=True, overflow="ellipsis")
        return line.append(text, style)

    def render(self) -> Group:
        """What is on the screen now."""
        from rich.console import Group

        with self._lock:
            table = self._table()
            waiting = f"{len(self._waiting)} waiting" if self._waiting else ""
        foot = ", ".join(filter(None, [waiting, self._remaining().strip(" ()")]))
        return Group(table, *([foot] if foot else []))

    def _table(self) -> Table:
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 2), expand=True)
        for ratio in (None, None, None, None, None, 1):
            table.add_column(no_wrap=True, overflow="ellipsis", ratio=ratio)
        for cell, row in self._rows.items():
            size = f"~{human_bytes(row.size_bytes)}" if row.size_bytes else ""
            took = human_seconds(time.monotonic() - row.began)
            what, where = (row.at.component, str(row.at)) if row.at else ("", "")
            last = Text(row.text).append(f"  {row.last}", "dim")
            table.add_row(*map(Text, (cell, took, what, where, size)), last)
        return table
