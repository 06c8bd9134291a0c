"""Show the builds of a run side by side: lines for logs, events for programs.

Each class is a sink of events; any thread may call it. `live` has the live table.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

from imagegen.events import events
from imagegen.events.progress import RunProgress
from imagegen.text import clean, human_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from imagegen.events.events import Event
    from imagegen.events.progress import TimeLeft


def line_of(event: Event) -> str:
    """Write an event of a cell for people; empty for what only its log file has."""
    match event:
        case events.CellWaits() | events.CellRetried() | events.StepStarted():
            return event.text
        case events.StageReached():
            return f"{event.component} is {event.image_id[7:19]}"
        case events.CellEnded() if event.began:
            cached = f", {event.cached} of {event.steps} steps cached" if event.cached else ""
            return event.text + (cached if event.record.outcome == "built" else "")
    return ""


def text_of_left(left: TimeLeft | None) -> str:
    """Write `about 12s left`, and the names of late work; empty where the time is unknown."""
    if left is None:
        return ""
    much = left.seconds >= 1
    seconds = human_seconds(left.seconds) if left.seconds >= 60 else f"{left.seconds:.0f}s"
    if not left.late:
        return f"about {seconds} left" if much else ""
    takes = "takes" if len(left.late) == 1 else "take"
    late = f"{', '.join(left.late)} {takes} longer than predicted"
    return f"more than {seconds} left: {late}" if much else late


def percent(share: float | None) -> str:
    """Write a share as `42%`; empty where there is no prediction."""
    return "" if share is None else f"{int(100 * share)}%"


class PlainProgress:
    """Print a plain line for each step."""

    def __init__(
        self,
        print_line: Callable[[str], None],
        cells: Sequence[str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._print, self._clock, self._began = print_line, clock, clock()
        self._width = max(map(len, cells), default=0)
        self._run = RunProgress(clock)
        self._queued: set[tuple[str, str]] = set()

    def __call__(self, event: Event) -> None:
        """Take an event, and print it."""
        self._run(event)
        if isinstance(event, events.Note):
            self._print(event.text)
        elif isinstance(event, events.CellsQueued):
            self._queue(event)
        elif (text := line_of(event)) and not isinstance(
            event, (events.CellsPlanned, events.Predicted)
        ):
            self._line(
                event.cell, text if not isinstance(event, events.StepStarted) else self._step(event)
            )

    def _step(self, event: events.StepStarted) -> str:
        if event.at is None:
            return event.text
        left = text_of_left(self._run.left())
        where = f"{event.at} {percent(self._run.share(event.cell))}".rstrip()
        return f"{where}  {event.text}" + (f"  ({left})" if left else "")

    def _queue(self, event: events.CellsQueued) -> None:
        """Print once what a cell waits for, however often it changes between two reasons."""
        news = [cell for cell in event.cells if (cell, event.waits_for) not in self._queued]
        self._queued |= {(cell, event.waits_for) for cell in news}
        if len(news) == 1:
            self._line(news[0], f"waits for {event.waits_for}")
        elif news:
            self._line(f"{len(news)} cells", f"wait for {event.waits_for}: {', '.join(news)}")

    def _line(self, cell: str, text: str) -> None:
        since = f"{self._clock() - self._began:.1f}s"
        self._print(f"{since:>8}  {cell:<{self._width}}  {clean(text)}")


class PrintEvent(Protocol):
    """A function that prints an event for a program."""

    def __call__(self, kind: str, **fields: object) -> None:
        """Print an event of this kind, with its fields."""


class JsonProgress:
    """Print a JSON line for each step, line of output and end."""

    def __init__(
        self,
        print_line: Callable[[str], None],
        print_event: PrintEvent,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._print, self._event = print_line, print_event
        self._run = RunProgress(clock)

    def __call__(self, event: Event) -> None:
        """Take an event, and print it."""
        self._run(event)
        match event:
            case events.Note():
                self._print(event.text)
            case events.StepOutput():
                self._event("log", cell=event.cell, text=event.line)
            case events.CellsQueued():
                self._event("waits", cells=list(event.cells), waits_for=event.waits_for)
            case events.CellWaits() | events.CellRetried():
                self._event("step", cell=event.cell, text=event.text)
            case events.StepStarted():
                self._event("step", cell=event.cell, text=event.text, **self._where(event))
            case events.StageReached():
                text = line_of(event)
                self._event("done", cell=event.cell, outcome="built", text=text)
            case events.CellEnded() if event.began:
                self._event("done", cell=event.cell, **_end(event))

    def _where(self, event: events.StepStarted) -> dict[str, object]:
        """Return where the cell is, and what is predicted of the run, as far as both are known."""
        if event.at is None:
            return {}
        at = {"component": event.at.component, "step": event.at.number, "steps": event.at.of}
        left, share = self._run.left(), self._run.share(event.cell)
        if left is None or share is None:
            return at
        return at | {
            "layer_bytes": self._run.layer_bytes(event.cell, event.at.component),
            "share": round(share, 3),
            "left_seconds": round(left.seconds, 1),
            "late": list(left.late),
        }


def _end(event: events.CellEnded) -> dict[str, object]:
    steps = {"steps": event.steps, "cached": event.cached} if event.steps else {}
    return {"outcome": event.record.outcome, "text": event.text, **steps}
