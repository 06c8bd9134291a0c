"""How many builds work at one moment. One that only waits for its image lets the next one begin."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

POLL_SECONDS = 0.2


class Slots:
    """So many places for cells that work. Every method may be called from any thread."""

    def __init__(self, count: int) -> None:
        self._free = threading.Semaphore(max(1, count))
        self._lock = threading.Lock()
        self._holders: set[str] = set()

    @contextmanager
    def held(self, cell: str, stopping: Callable[[], bool] = lambda: False) -> Iterator[None]:
        """A place for a cell until it leaves, at the end of the block at the latest.

        When `stopping`, the wait ends and there is none.
        """
        while not stopping():
            if self._free.acquire(timeout=POLL_SECONDS):
                with self._lock:
                    self._holders.add(cell)
                break
        try:
            yield
        finally:
            self.leave(cell)

    def leave(self, cell: str) -> None:
        """Give the cell's place to another; nothing where it has none."""
        with self._lock:
            if cell in self._holders:
                self._holders.remove(cell)
                self._free.release()
