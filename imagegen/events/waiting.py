"""Say it when an engine or a lock lets a run wait: nobody looks at a silent terminal for long."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PATIENCE_SECONDS = 3
"""The seconds after which a wait is told."""

_listeners: list[Callable[[str], None]] = []


def tell(listener: Callable[[str], None]) -> None:
    """Give the texts of `waiting_for` to this listener from now on, and to no other."""
    _listeners[:] = [listener]


def say(text: str) -> None:
    """Give a text to the listener."""
    for listener in _listeners:
        listener(text)


@contextmanager
def waiting_for(what: str, limit: float | None = None) -> Iterator[None]:
    """Say after PATIENCE_SECONDS that this block still waits, and when it gives up, if it does."""
    text = f"waiting for {what}: {PATIENCE_SECONDS} s so far"
    late = threading.Timer(
        PATIENCE_SECONDS + 0.2, say, [text if limit is None else f"{text}, at most {limit:g} s"]
    )
    late.daemon = True
    late.start()
    try:
        yield
    finally:
        late.cancel()
