"""Print for people on a terminal, in plain lines for logs, or as JSON lines.

Nothing else prints. Results go to stdout; notes, progress and errors go to stderr. In the JSON
format a program reads stdout: it has one JSON document a line, for events, results and errors. What
is for people only (`line`, `table`) is not printed there.
"""

from __future__ import annotations

import io
import json
import os
import sys
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, TextIO

from imagegen.console.styles import STYLES
from imagegen.events import waiting

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console as Screen

    from imagegen.errors import ImagegenError
    from imagegen.events.events import Sink


def make_console(
    fmt: str, stdout: TextIO | None = None, stderr: TextIO | None = None, *, live: bool = True
) -> Console:
    """Make a console for the format `auto`, `plain` or `json`.

    `auto` is live and coloured on a terminal only. Without `live`, and where `CI` is set, no text
    on the screen is overwritten. `NO_COLOR` removes the colours (no-color.org).
    """
    out, err = _Stream(stdout or sys.stdout), _Stream(stderr or sys.stderr)
    console = _console_of(fmt, out, err, live)
    waiting.tell(console.note)
    return console


def _console_of(fmt: str, out: _Stream, err: _Stream, live: bool) -> Console:
    if fmt == "json":
        return _JsonConsole(out, err)
    dumb = os.environ.get("TERM") == "dumb"
    if fmt == "auto" and not dumb and (out.is_terminal or err.is_terminal):
        return _TerminalConsole(out, err, live=live and not os.environ.get("CI"))
    return Console(out, err)


_LOST: list[str] = []
"""Why results could not be written to stdout."""


def output_lost() -> str:
    """Say why a part of the results could not be written; empty where all of them were."""
    return next(iter(_LOST), "")


class _Stream:
    """A text stream for several threads that accepts any character.

    A write that fails ends no build: what follows is discarded. Where a closed pipe is not the
    reason, `output_lost` says it for results.
    """

    def __init__(self, stream: TextIO) -> None:
        self.raw = stream
        self._lock = threading.Lock()
        self.is_terminal = stream.isatty()
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")

    def line(self, text: str) -> None:
        with self._lock:
            try:
                self.raw.write(text + "\n")
                self.raw.flush()
            except (OSError, ValueError) as error:
                if self.raw is sys.stdout and not isinstance(error, BrokenPipeError):
                    _LOST.append(getattr(error, "strerror", None) or str(error))
                self._to_nowhere()

    def _to_nowhere(self) -> None:
        """Discard later output, that of the flush at exit too: the reader is gone (`| head`)."""
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.raw.fileno())


def _aligned(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    every = [list(columns), *([str(value) for value in row] for row in rows)]
    widths = [max(len(row[i]) for row in every) for i in range(len(columns))]
    for row in every:
        yield "  ".join(map(str.ljust, row, widths)).rstrip()


class Console:
    """Print the output of a command, here in plain lines.

    No meaning is in a colour alone. `wants_json` lets a command skip work that only `data` would
    show.
    """

    wants_json = False

    def __init__(self, out: _Stream, err: _Stream) -> None:
        self._out, self._err = out, err

    def line(self, text: str = "") -> None:
        """Print one line of the result, for people."""
        self._out.line(text)

    def note(self, text: str) -> None:
        """Print a line about progress or a warning, apart from the result."""
        self._err.line(text)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
        """Print a table of the result, for people."""
        for text in ([title] if title else []) + list(_aligned(columns, rows)):
            self.line(text)

    def data(self, obj: object) -> None:
        """Print the result for a program: only in the JSON format."""

    def event(self, kind: str, **fields: object) -> None:
        """Print something that happened, for a program: only in the JSON format."""

    def error(self, error: ImagegenError) -> None:
        """Print all problems of an error."""
        self.note("\n\n".join(str(problem) for problem in error.problems))

    @contextmanager
    def builds(self, cells: Sequence[str]) -> Iterator[Sink]:
        """Yield a sink that shows the builds of these cells, until the end of the `with`."""
        from imagegen.console.progress import PlainProgress

        yield PlainProgress(self.note, cells)


class _JsonConsole(Console):
    wants_json = True
    _began = time.monotonic()

    def line(self, text: str = "") -> None:
        """Print nothing: a program reads `data`."""

    def data(self, obj: object) -> None:
        self._out.line(json.dumps(obj, sort_keys=True, default=str))

    def event(self, kind: str, **fields: object) -> None:
        seconds = round(time.monotonic() - self._began, 3)
        self.data({"event": kind, "seconds": seconds, **fields})

    def error(self, error: ImagegenError) -> None:
        problems = [asdict(problem) for problem in error.problems]
        self.data({"errors": problems, "exit_code": error.exit_code})

    @contextmanager
    def builds(self, cells: Sequence[str]) -> Iterator[Sink]:
        from imagegen.console.progress import JsonProgress

        del cells
        yield JsonProgress(self.note, self.event)


class _TerminalConsole(Console):
    """Print tables and a live table with rich, each where its stream is a terminal."""

    _live: Screen | None = None

    def __init__(self, out: _Stream, err: _Stream, *, live: bool = True) -> None:
        super().__init__(out, err)
        self._may_live = live

    def line(self, text: str = "") -> None:
        self._above(self._out, text)

    def note(self, text: str) -> None:
        self._above(self._err, text)

    def _above(self, stream: _Stream, text: str) -> None:
        """Print a line above the live table, where there is one on this terminal."""
        if self._live is not None and stream.is_terminal:
            self._live.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            stream.line(text)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
        if not self._out.is_terminal:
            super().table(columns, rows, title)
            return
        from rich import box
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(
            title=Text(title) if title else None, title_justify="left", box=box.SIMPLE_HEAD
        )
        for column in columns:
            table.add_column(Text(column), overflow="fold")
        for row in rows:
            table.add_row(*(Text(str(value), STYLES.get(str(value), "")) for value in row))
        Console(file=self._out.raw).print(table)

    @contextmanager
    def builds(self, cells: Sequence[str]) -> Iterator[Sink]:
        if not self._err.is_terminal or not self._may_live:
            with super().builds(cells) as progress:
                yield progress
            return
        from rich.console import Console
        from rich.live import Live

        from imagegen.console.live import LiveProgress

        screen = Console(file=self._err.raw)
        progress = LiveProgress(cells, screen)
        with Live(
            console=screen, get_renderable=progress.render, redirect_stderr=False, transient=True
        ):
            self._live = screen
            try:
                yield progress
            finally:
                self._live = None
