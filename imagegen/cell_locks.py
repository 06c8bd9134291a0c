"""One build of a cell at a time, over all imagegen processes of this state folder.

The lock is the kernel's, on an open file: it ends with the process that holds it, however that
ends. The file itself stays; it says who held it last.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

POLL_SECONDS = 0.2


@contextmanager
def locked(
    path: Path, on_wait: Callable[[str], None], stopping: Callable[[], bool] = lambda: False
) -> Iterator[bool]:
    """Hold the lock of a file; yields whether somebody else held it first.

    `on_wait` is told once who that is. When `stopping`, the wait ends and the lock is not held.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        waited = False
        while not (mine := _taken(file)) and not stopping():
            if not waited:
                on_wait(_holder(file))
            waited = True
            time.sleep(POLL_SECONDS)
        if mine:
            os.ftruncate(file, 0)
            os.pwrite(file, str(os.getpid()).encode(), 0)
        yield waited
    finally:
        os.close(file)


def free(path: Path) -> bool:
    """Whether nobody holds the lock of a file, or there is none."""
    try:
        file = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return True
    try:
        return _taken(file)
    finally:
        os.close(file)


def cell_lock(state: Path, engine_url: str, tag: str) -> Path:
    """The file for one image on one engine."""
    name = hashlib.sha256(f"{engine_url} {tag}".encode()).hexdigest()[:24]
    return state / "locks" / f"{name}.cell"


def run_lock(state: Path, run_id: int) -> Path:
    """The file that a run holds as long as it lives."""
    return state / "locks" / f"{run_id}.run"


def _taken(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(file: int) -> str:
    pid = os.pread(file, 20, 0).decode(errors="replace").strip()
    return f"process {pid}" if pid.isdigit() else "another process"
