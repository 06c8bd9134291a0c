"""Run a program of the host and report each line that it prints."""

from __future__ import annotations

import os
import subprocess
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

TAIL_LINES = 15
_STOP_SECONDS = 10


@dataclass(frozen=True)
class Ended:
    """Hold how a program ended, with its last lines of stdout and stderr together."""

    code: int
    tail: tuple[str, ...]


def run(
    argv: Sequence[str], on_line: Callable[[str], None], env: Mapping[str, str] | None = None
) -> Ended:
    """Run a program to its end; `env` is added to the environment.

    Raises OSError where it cannot start. On Ctrl-C the program is stopped first.
    """
    tail: deque[str] = deque(maxlen=TAIL_LINES)
    with subprocess.Popen(
        list(argv),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, **(env or {})},
        text=True,
        errors="replace",
    ) as process:
        try:
            for line in process.stdout or ():
                tail.append(line.rstrip())
                on_line(tail[-1])
            code = process.wait()
        except BaseException:
            _stop(process)
            raise
    return Ended(code, tuple(tail))


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()


def detach(argv: Sequence[str], log: str) -> None:
    """Start a program that outlives this one; its output is appended to the file `log`."""
    with Path(log).open("ab") as output:
        subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
