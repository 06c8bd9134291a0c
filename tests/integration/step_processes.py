"""Find build steps that run on this machine, by a mark in their text."""

from __future__ import annotations

import time
from pathlib import Path

SECONDS = 120
"""Long, because a step starts late on a busy machine."""


def running(mark: str) -> bool:
    """Return whether a build step with this mark runs: its shell has the step as its argument."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark.encode() in path.read_bytes():
                return True
        except OSError:
            continue
    return False


def wait_for(mark: str, runs: bool) -> None:
    deadline = time.monotonic() + SECONDS
    while running(mark) is not runs:
        assert time.monotonic() < deadline, f"{mark} {'does not start' if runs else 'still runs'}"
        time.sleep(0.1)
