"""Pause Python's cyclic garbage collector while many records are made.

Thousands of records are made that all stay in use: the collector would visit them and free none.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def no_collection() -> Iterator[None]:
    """Pause the cyclic garbage collector; turn it on afterwards if it was on before."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
