"""Show the builds of a run side by side: lines for logs, events for programs, a table that lives.

Each class is a sink of events; any thread may call it.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from imagegen.console.styles import STYLES
from imagegen.events import events
from imagegen.text import clean, human_bytes, human_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console as Screen
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from imagegen.events.events import Event


def line_of(event: Event) -> str:
    """What people read of an event of a cell; empty for what only its log file says."""
    match event:
        case events.CellWaits() | events.StepStarted():
            return event.text
        case events.StageReached():
            return f"{event.component} is {event.image_id[7:19]}"
        case events.CellEnded() if event.began:
            return event.text
    return ""


def _left(seconds: float | None) -> str:
    return f"about {human_seconds(seconds)} left" if seconds else ""


class PlainProgress:
    """A plain line for each step."""

    def __init__(self, print_line: Callable[[str], None], cells: Sequence[str]) -> None:
        self._print, self._began = print_line, time.monotonic()
        self._width = max(map(len, cells), default=0)

    def __call__(self, event: Event) -> None:
        if isinstance(event, events.Note):
            self._print(event.text)
            return
        text = line_of(event)
        if not text or isinstance(event, (events.CellsPlanned, events.Predicted)):
            return
        if isinstance(event, events.StepStarted) and event.at:
            left = _left(event.left_seconds)
            text = f"{event.at}  {text}" + (f"  ({left})" if left else "")
        since = f"{time.monotonic() - self._began:.1f}s"
        self._print(f"{since:>8}  {event.cell:<{self._width}}  {clean(text)}")


class PrintEvent(Protocol):
    """What prints an event for a program."""

    def __call__(self, kind: str, **fields: object) -> None: ...


class JsonProgress:
    """A JSON line for each step, line of output and end."""

    def __init__(self, print_line: Callable[[str], None], print_event: PrintEvent) -> None:
        self._print, self._event = print_line, print_event

    def __call__(self, event: Event) -> None:
        match event:
            case events.Note():
                self._print(event.text)
            case events.StepOutput():
                self._event("log", cell=event.cell, text=event.line)
            case events.CellWaits():
                self._event("step", cell=event.cell, text=event.text)
            case events.StepStarted():
                self._event("step", cell=event.cell, text=event.text, **_where(event))
            case events.StageReached():
                text = line_of(event)
                self._event("done", cell=event.cell, outcome="built", text=text)
            case events.CellEnded() if event.began:
                outcome = event.record.outcome
                self._event("done", cell=event.cell, outcome=outcome, text=event.text)


def _where(event: events.StepStarted) -> dict[str, object]:
    """Where the cell is, and what is predicted of the run, as far as either is known."""
    if event.at is None:
        return {}
    at = {"component": event.at.component, "step": event.at.number, "steps": event.at.of}
    if event.left_seconds is None:
        return at
    return at | {
        "layer_bytes": event.layer_bytes,
        "left_seconds": round(event.left_seconds, 1),
    }


@dataclass
class _Row:
    """One build that runs: when it began, where it is, its layer's predicted bytes, last line."""

    began: float
    text: str
    at: events.StepAt | None = None
    size_bytes: int = 0
    last: str = ""


class LiveProgress:
    """A row for each image that builds; what is done scrolls away above."""

    def __init__(self, cells: Sequence[str], screen: Screen) -> None:
        self._screen = screen
        self._width = max(map(len, cells), default=0)
        self._lock = threading.Lock()
        self._waiting = set(cells)
        self._rows: dict[str, _Row] = {}
        self._end: float | None = None

    def __call__(self, event: Event) -> None:
        match event:
            case events.Note():
                self._screen.print(event.text, markup=False, highlight=False, soft_wrap=True)
            case events.Predicted():
                self._predicted(event.left_seconds)
            case events.CellWaits():
                self._step(event.cell, event.text)
            case events.StepStarted():
                self._predicted(event.left_seconds)
                self._step(event.cell, event.text, event.at, event.layer_bytes)
            case events.StepOutput():
                self._output(event.cell, event.line)
            case events.StageReached():
                self._done(event.cell, "built", line_of(event))
            case events.CellEnded():
                self._predicted(event.left_seconds)
                if event.began:
                    self._done(event.cell, event.record.outcome, event.text)

    def _predicted(self, left_seconds: float | None) -> None:
        if left_seconds is not None:
            self._end = time.monotonic() + left_seconds

    def _step(
        self, cell: str, text: str, at: events.StepAt | None = None, size_bytes: int = 0
    ) -> None:
        with self._lock:
            self._waiting.discard(cell)
            began = self._rows[cell].began if cell in self._rows else time.monotonic()
            self._rows[cell] = _Row(began, clean(text), at, size_bytes)

    def _output(self, cell: str, line: str) -> None:
        with self._lock:
            if cell in self._rows:
                self._rows[cell].last = clean(line)

    def _done(self, cell: str, outcome: str, text: str) -> None:
        with self._lock:
            self._waiting.discard(cell)
            row = self._rows.pop(cell, _Row(time.monotonic(), ""))
        line = self._line(cell, row.began, clean(text), STYLES.get(outcome, ""))
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
        left = max(0.0, self._end - time.monotonic()) if self._end else None
        foot = ", ".join(filter(None, [waiting, _left(left)]))
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
