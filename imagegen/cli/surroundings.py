"""Prepare this process for what is around it: signals that end it, streams that are closed."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

ENDING = (signal.SIGTERM, signal.SIGHUP)
"""The signals that end a run as Ctrl-C does."""


def end_like_ctrl_c() -> None:
    """Raise KeyboardInterrupt on SIGTERM and SIGHUP, so that containers are removed and builds end.

    A signal that is ignored, as under `nohup`, stays ignored. A second signal does not interrupt
    what the first one began to remove.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    terminals = [number for number in (1, 2) if os.isatty(number)]

    def interrupt(_: int, __: FrameType | None) -> None:
        for other in ENDING:
            signal.signal(other, signal.SIG_IGN)
        _leave(terminals)
        raise KeyboardInterrupt

    for number in ENDING:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, interrupt)


def _leave(terminals: list[int]) -> None:
    """Write to nowhere where a terminal was closed: each write to it would be an error."""
    for number in terminals:
        if not os.isatty(number):
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), number)


def open_closed_streams() -> None:
    """Open the null device for stdin, stdout and stderr where they are closed (`>&-`).

    Otherwise the next file that is opened, such as the journal, would get their number, and with
    it all that is printed.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            number = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))


def write_rest() -> None:
    """Write what stdout still holds.

    Raises OSError where that cannot be done: Python itself would do it at its end, and complain.
    """
    stream = sys.stdout
    stream.flush()


def drop_unwritten() -> None:
    """Drop what cannot be written any more, so that Python does not try it again at its end."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
