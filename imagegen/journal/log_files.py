"""Write a log file for each cell that a run builds, with every step and every line of output."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

from imagegen.events import events

if TYPE_CHECKING:
    from pathlib import Path


def log_path(folder: Path, cell_id: str) -> Path:
    """Return the path of a cell's log file in the folder of its run."""
    return folder / f"{cell_id.replace('/', '-')}.log"


class LogFiles:
    """Receive events, and keep the file of each cell open from CellStarted to CellEnded.

    It is a sink and a context manager. Every line is written at once, so that it is in the file
    even if the process is killed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._lock = folder, threading.Lock()
        self._files: dict[str, TextIO] = {}

    def __enter__(self) -> LogFiles:
        self._folder.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(self, *_: object) -> None:
        for cell in list(self._files):
            self._close(cell)

    def __call__(self, event: events.Event) -> None:
        """Write the lines of an event to the log file of its cell."""
        if isinstance(
            event, (events.CellsPlanned, events.Note, events.Predicted, events.CellsQueued)
        ):
            return
        if isinstance(event, events.CellStarted):
            self._open(event.cell)
        for line in lines_of(event):
            self._write(event.cell, line)
        if isinstance(event, events.CellEnded):
            self._close(event.cell)

    def _open(self, cell: str) -> None:
        path = log_path(self._folder, cell)
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._lock:
            self._files[cell] = path.open("w", encoding="utf-8", errors="backslashreplace")

    def _write(self, cell: str, line: str) -> None:
        with self._lock:
            file = self._files.get(cell)
            # A full disk ends no build: the rest of its log is missing then.
            with suppress(OSError):
                if file is not None:
                    file.write(line + "\n")
                    file.flush()

    def _close(self, cell: str) -> None:
        with self._lock:
            file = self._files.pop(cell, None)
        with suppress(OSError):
            if file is not None:
                file.close()


def lines_of(event: events.Event) -> tuple[str, ...]:
    """Return the lines that an event adds to the log file of its cell."""
    match event:
        case events.CellStarted():
            return (f"{event.cell}: {event.why}",)
        case events.StepStarted():
            return (f"> {event.name}",)
        case events.StepCached():
            return (f"= cached: {event.name}",)
        case events.StepFailed():
            return (f"! {event.name}: {event.error}",)
        case events.StepOutput():
            return (f"  {event.line}",)
        case events.CellLogged():
            return (event.line,)
        case events.CellRetried():
            return (event.text,)
        case events.CellEnded(record) if record.outcome == "built":
            return (*record.detail, f"built {record.image_id}")
        case events.CellEnded():
            return (event.text,)
    return ()
