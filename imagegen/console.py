"""The only place that prints: for people on a terminal, in plain lines for logs, as JSON lines.

Results go to stdout, notes, progress and errors to stderr. In the JSON format stdout is for a
program and holds one JSON document a line: events, results and errors; what is for people only
(`line`, `table`) is not printed there.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console as Screen
    from rich.console import Group
    from rich.text import Text

    from imagegen.errors import ImagegenError

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x00-\x08\x0b-\x1f\x7f]"
)
_STYLES = {"built": "green", "up-to-date": "green", "failed": "bold red"}


def make_console(fmt: str, stdout: TextIO | None = None, stderr: TextIO | None = None) -> Console:
    """A console for `auto`, `plain` or `json`; `auto` is live and coloured on a terminal only.

    `NO_COLOR` takes the colours away (no-color.org); nothing is said by colour alone.
    """
    out, err = _Stream(stdout or sys.stdout), _Stream(stderr or sys.stderr)
    if fmt == "json":
        return _JsonConsole(out, err)
    dumb = os.environ.get("TERM") == "dumb"
    if fmt == "auto" and not dumb and (out.is_terminal or err.is_terminal):
        return _TerminalConsole(out, err)
    return Console(out, err)


def human_bytes(count: int) -> str:
    """`4.9 GB`: decimal units, as registries and disks count."""
    size = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 999.5:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 99.95 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def human_seconds(seconds: float) -> str:
    """`12.3s`, `6m12s`, `1h02m`."""
    if seconds < 59.95:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest:02}s" if minutes < 60 else f"{minutes // 60}h{minutes % 60:02}m"


def _clean(text: str) -> str:
    """Text of others (build output) without what would steer the terminal."""
    return _ESCAPES.sub("", text.replace("\t", "    "))


class _Stream:
    """A text stream that threads share, that takes any character and survives a closed pipe."""

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
            except BrokenPipeError:
                self._to_nowhere()

    def _to_nowhere(self) -> None:
        """The reader went away (`| head`): go on without it, also in the flush at exit."""
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.raw.fileno())


def _aligned(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    every = [list(columns), *([str(value) for value in row] for row in rows)]
    widths = [max(len(row[i]) for row in every) for i in range(len(columns))]
    for row in every:
        yield "  ".join(map(str.ljust, row, widths)).rstrip()


class Board:
    """Progress of builds side by side, here a plain line for each step.

    Every method may be called from any thread.
    """

    def __init__(self, console: Console, cells: Sequence[str]) -> None:
        self._console, self._began = console, time.monotonic()
        self._width = max(map(len, cells), default=0)

    def step(self, cell: str, text: str) -> None:
        """The cell has come to this step."""
        since = f"{time.monotonic() - self._began:.1f}s"
        self._console.note(f"{since:>8}  {cell:<{self._width}}  {_clean(text)}")

    def log(self, cell: str, line: str) -> None:
        """One line of output of the cell's step. Nothing here: the cell's log file has it."""

    def done(self, cell: str, outcome: str, text: str) -> None:
        """The cell has come to its end; `outcome` is one of `model.Outcome`, `text` says it."""
        self.step(cell, text or outcome)


class Console:
    """What a verb prints with, here in plain lines. Nothing is said by colour alone.

    `wants_json` spares a verb work that only `data` would show.
    """

    wants_json = False

    def __init__(self, out: _Stream, err: _Stream) -> None:
        self._out, self._err = out, err

    def line(self, text: str = "") -> None:
        """One line of the result, for people."""
        self._out.line(text)

    def note(self, text: str) -> None:
        """What is going on, beside the result."""
        self._err.line(text)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
        """A table of the result, for people."""
        for text in ([title] if title else []) + list(_aligned(columns, rows)):
            self.line(text)

    def data(self, obj: Any) -> None:
        """The result for a program: printed in the JSON format only."""

    def event(self, kind: str, **fields: Any) -> None:
        """Something that happened, for a program: printed in the JSON format only."""

    def error(self, error: ImagegenError) -> None:
        """All problems of an error."""
        self.note("\n\n".join(str(problem) for problem in error.problems))

    @contextmanager
    def builds(self, cells: Sequence[str]) -> Iterator[Board]:
        """A board for the builds of these cells, until the end of the `with`."""
        yield Board(self, cells)


class _JsonBoard(Board):
    def step(self, cell: str, text: str) -> None:
        self._console.event("step", cell=cell, text=text)

    def log(self, cell: str, line: str) -> None:
        self._console.event("log", cell=cell, text=line)

    def done(self, cell: str, outcome: str, text: str) -> None:
        self._console.event("done", cell=cell, outcome=outcome, text=text)


class _JsonConsole(Console):
    wants_json = True
    _began = time.monotonic()

    def line(self, text: str = "") -> None:
        """Nothing: a program reads `data`."""

    def data(self, obj: Any) -> None:
        self._out.line(json.dumps(obj, sort_keys=True, default=str))

    def event(self, kind: str, **fields: Any) -> None:
        seconds = round(time.monotonic() - self._began, 3)
        self.data({"event": kind, "seconds": seconds, **fields})

    def error(self, error: ImagegenError) -> None:
        problems = [asdict(problem) for problem in error.problems]
        self.data({"errors": problems, "exit_code": error.exit_code})

    @contextmanager
    def builds(self, cells: Sequence[str]) -> Iterator[Board]:
        yield _JsonBoard(self, cells)


class _TerminalConsole(Console):
    """Tables and a live board drawn by rich, each where its stream is a terminal."""

    _live: Screen | None = None

    def line(self, text: str = "") -> None:
        self._above(self._out, text)

    def note(self, text: str) -> None:
        self._above(self._err, text)

    def _above(self, stream: _Stream, text: str) -> None:
        """Above the live board where there is one on this terminal."""
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
            table.add_row(*(Text(str(value), _STYLES.get(str(value), "")) for value in row))
        Console(file=self._out.raw).print(table)

    @contextmanager
    def builds(self, cells: Sequence[str]) -> Iterator[Board]:
        if not self._err.is_terminal:
            with super().builds(cells) as board:
                yield board
            return
        from rich.console import Console
        from rich.live import Live

        screen = Console(file=self._err.raw)
        board = _LiveBoard(self, cells, screen)
        with Live(console=screen, get_renderable=board.render, redirect_stderr=False):
            self._live = screen
            try:
                yield board
            finally:
                self._live = None


class _LiveBoard(Board):
    """A line for each image that builds; what is done scrolls away above."""

    def __init__(self, console: Console, cells: Sequence[str], screen: Screen) -> None:
        super().__init__(console, cells)
        self._screen = screen
        self._lock = threading.Lock()
        self._waiting = set(cells)
        self._rows: dict[str, tuple[float, str, str]] = {}  # when it began, step, last line

    def step(self, cell: str, text: str) -> None:
        with self._lock:
            self._waiting.discard(cell)
            began = self._rows[cell][0] if cell in self._rows else time.monotonic()
            self._rows[cell] = (began, _clean(text), "")

    def log(self, cell: str, line: str) -> None:
        with self._lock:
            if cell in self._rows:
                self._rows[cell] = (*self._rows[cell][:2], _clean(line))

    def done(self, cell: str, outcome: str, text: str) -> None:
        with self._lock:
            self._waiting.discard(cell)
            began = self._rows.pop(cell, (time.monotonic(), "", ""))[0]
        line = self._line(cell, began, _clean(text or outcome), _STYLES.get(outcome, ""))
        self._screen.print(line, soft_wrap=True)

    def _line(self, cell: str, began: float, text: str, style: str = "") -> Text:
        from rich.text import Text

        took = human_seconds(time.monotonic() - began)
        line = Text(f"{cell:<{self._width}}  {took:>7}  ", no_wrap=True, overflow="ellipsis")
        return line.append(text, style)

    def render(self) -> Group:
        from rich.console import Group

        with self._lock:
            lines: list[Text | str] = [
                self._line(cell, began, step).append(f"  {last}", "dim")
                for cell, (began, step, last) in self._rows.items()
            ]
            waiting = len(self._waiting)
        return Group(*lines, *([f"{waiting} waiting"] if waiting else []))
