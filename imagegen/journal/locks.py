"""Lock a cell, so that only one imagegen process of this host builds it on an engine.

The lock is the kernel's lock on an open file: it ends with the process that holds it, however that
ends. The file itself stays; it has the number of the last process that held the lock. The files of
cells are where every user of the host finds them, whatever the environment; those of runs are in
the state folder.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

POLL_SECONDS = 0.2

SHARED_FOLDERS = (Path("/run/lock"), Path("/var/tmp"))
"""The lock files of cells are in the first of these folders that all users may write to."""

EVERYBODY = 0o1777
"""Everybody may write, and nobody may remove the files of others."""


@contextmanager
def holding_lock(
    path: Path, on_wait: Callable[[str], None], stopping: Callable[[], bool] = lambda: False
) -> Iterator[bool]:
    """Hold the lock of a file; yield whether another process held it first.

    `on_wait` is called once, with the name of that process. When `stopping` returns true, the wait
    ends without the lock.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    file = _opened(path)
    try:
        waited = False
        while not (mine := _taken(file)) and not stopping():
            # A process that has just taken the lock writes its number a moment later.
            time.sleep(POLL_SECONDS)
            if not waited:
                on_wait(_holder(file))
            waited = True
        if mine:
            os.ftruncate(file, 0)
            os.pwrite(file, str(os.getpid()).encode(), 0)
        yield waited
    finally:
        os.close(file)


def free(path: Path) -> bool:
    """Return whether no process holds the lock of a file, or the file does not exist."""
    try:
        file = os.open(path, os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except PermissionError:
        return False  # another user's, who may hold it
    try:
        return _taken(file)
    finally:
        os.close(file)


def engine_locks(engine_id: str, state: Path) -> Path:
    """Make the folder for the locks of one engine's images; it is the same for all users.

    It is the same for all state folders, too. On a host without a folder for everybody it is in
    this state folder.
    """
    shared = next((one for one in SHARED_FOLDERS if _for_everybody(one)), None)
    folder = (shared or state) / f"imagegen-{_short(engine_id)}"
    with suppress(FileExistsError):
        folder.mkdir(parents=True)
        folder.chmod(EVERYBODY)
    return folder


def cell_lock_path(folder: Path, tag: str) -> Path:
    """Return the lock file of one image; `folder` is the folder of its engine."""
    return folder / f"{_short(tag)}.cell"


def _short(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:24]


def _for_everybody(folder: Path) -> bool:
    try:
        return folder.stat().st_mode & EVERYBODY == EVERYBODY
    except OSError:
        return False


def run_lock_path(state: Path, run_id: int) -> Path:
    """Return the file that a run keeps locked while it runs."""
    return state / "locks" / f"{run_id}.run"


def _opened(path: Path) -> int:
    """Open a file that others may lock too.

    A file that exists is not opened with O_CREAT: in a folder for everybody the kernel refuses that
    to all but its owner (`fs.protected_regular`).
    """
    while True:
        with suppress(FileNotFoundError):
            return os.open(path, os.O_RDWR | os.O_NOFOLLOW)
        with suppress(FileExistsError):
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
            os.fchmod(file, 0o666)
            return file


def _taken(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(file: int) -> str:
    pid = os.pread(file, 20, 0).decode(errors="replace").strip()
    return f"process {pid}" if pid.isdigit() else "another process"
