"""A build as a terminal shows it: recorded events, replayed into the live table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from screens import screen, svg_of

from imagegen.console.live import LiveProgress
from imagegen.events.events import CellEnded, CellsPlanned
from imagegen.events.stream import from_line

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from imagegen.events.events import Event

COMMAND = "imagegen build --matrix cpu"
COLUMNS = 116
SECONDS_LATER = 2.0
"""The picture is of so many seconds after half of the images were ready."""

Timed = tuple[float, "Event"]


class Clock:
    """Says the seconds of the event that is replayed."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """Return the seconds since the build began."""
        return self.now


def recorded_events(recorded: Path) -> list[Timed]:
    """Read each event with the seconds at which it happened."""
    lines = [line.partition(" ") for line in recorded.read_text(encoding="utf-8").splitlines()]
    return [(float(seconds), from_line(event)) for seconds, _, event in lines]


def moment(events: Sequence[Timed], cells: Sequence[str]) -> float:
    """Return the seconds at which some images are ready and others are being built."""
    ends = [seconds for seconds, event in events if isinstance(event, CellEnded)]
    return ends[(len(cells) - 1) // 2] + SECONDS_LATER


def build_screen(recorded: Path) -> str:
    """Draw what is on the screen at that moment."""
    console, clock = screen(COLUMNS), Clock()
    console.print(f"$ {COMMAND}", highlight=False)
    events = recorded_events(recorded)
    cells = next(event.cells for _, event in events if isinstance(event, CellsPlanned))
    progress, end = LiveProgress(cells, console, clock), moment(events, cells)
    for seconds, event in events:
        if seconds <= end:
            clock.now = seconds
            progress(event)
    clock.now = end
    console.print(progress.render())
    return svg_of(console, "build", COMMAND)
