"""Keep the standard streams usable: a caller may have closed them, or they may be full."""

import contextlib
import os
import sys
from typing import List


def open_missing() -> None:
    """Put the null device in place of standard streams that were closed.

    Else a file that is opened later would get the number of a closed one. A working directory that
    was removed is left for `/` too.
    """
    number = os.open(os.devnull, os.O_RDWR)
    while number <= 2:
        number = os.open(os.devnull, os.O_RDWR)
    os.close(number)
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)
    try:
        os.getcwd()
    except OSError:
        os.chdir("/")


def put_out(texts: List[str]) -> str:
    """Write texts to stdout, and say why that failed; empty if it did not.

    A reader that has seen enough, as `head` has, is no failure.
    """
    try:
        sys.stdout.write("".join(texts))
        sys.stdout.flush()
    except OSError as error:
        _give_up_stdout()
        return "" if isinstance(error, BrokenPipeError) else str(error.strerror)
    return ""


def _give_up_stdout() -> None:
    """Send what is still to be written nowhere, else Python complains of it when it ends."""
    with contextlib.suppress(OSError):
        number = os.open(os.devnull, os.O_WRONLY)
        os.dup2(number, 1)
        os.close(number)
