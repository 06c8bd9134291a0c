"""What an image asks of its launch."""

from __future__ import annotations

from typing import TypedDict


class Contract(TypedDict, total=False):
    """Capabilities, devices, ulimits, bytes of shared memory, and `bridge` or `host`."""

    caps: list[str]
    devices: list[str]
    ulimits: dict[str, int]
    shm_bytes: int
    network: str
