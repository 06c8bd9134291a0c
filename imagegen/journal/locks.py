"""One build of a cell at a time, over all imagegen processes of this host that use one engine.

The lock is the kernel's, on an open file: it ends with the process that holds it, however that
ends. The file itself stays; it says who held it last. The files of cells lie where every user of
the host finds them, whatever the environment says; those of runs in the state folder.
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
"""The first of them that all users of this host may write to has the locks of cells."""

EVERYBODY = 0o1777
"""All may write, and nobody may remove what is another's."""


@contextmanager
def holding_lock(
    path: Path, on_wait: Callable[[str], None], stopping: Callable[[], bool] = lambda: False
) -> Iterator[bool]:
    """Hold the lock of a file; yields whether somebody else held it first.

    `on_wait` is told once who that is. When `stopping`, the wait ends and the lock is not held.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    file = _opened(path)
    try:
        waited = False
        while not (mine := _taken(file)) and not stopping():
            # Whoever took it just now writes its number a moment later.
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
    """Whether nobody holds the lock of a file, or there is none."""
    try:
        file = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return True
    try:
        return _taken(file)
    finally:
        os.close(file)


def engine_locks(engine_id: str, state: Path) -> Path:
    """The folder for the locks of one engine's images, the same for all users and state folders.

    On a host without a folder for everybody it is in this state folder.
    """
    shared = next((one for one in SHARED_FOLDERS if _for_everybody(one)), None)
    folder = (shared or state) / f"imagegen-{_short(engine_id)}"
    with suppress(FileExistsError):
        folder.mkdir(parents=True)
        folder.chmod(EVERYBODY)
    return folder


def cell_lock_path(folder: Path, tag: str) -> Path:
    """The file for one image; `folder` is that of its engine."""
    return folder / f"{_short(tag)}.cell"


def _short(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:24]


def _for_everybody(folder: Path) -> bool:
    try:
        return folder.stat().st_mode & EVERYBODY == EVERYBODY
    except OSError:
        return False


def run_lock_path(state: Path, run_id: int) -> Path:
    """The file that a run holds as long as it lives."""
    return state / "locks" / f"{run_id}.run"


def _opened(path: Path) -> int:
    """A file that others may lock too. One that is there is not created again: the kernel refuses
    that to all but its owner, in a folder for everybody (`fs.protected_regular`)."""
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
