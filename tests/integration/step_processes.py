"""Build steps that run on this machine, found by a mark in their text."""

from __future__ import annotations

import time
from pathlib import Path

SECONDS = 120
"""A step starts late on a machine that does other things, too."""


def running(mark: str) -> bool:
    """Whether a build step with this mark runs: its shell has the step as its argument."""
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
