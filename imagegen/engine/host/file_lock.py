"""Lock a file over threads and processes; the system unlocks it when its holder dies."""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def one_at_a_time(path: Path) -> Iterator[None]:
    """Wait for the lock of a file, and hold it."""
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
