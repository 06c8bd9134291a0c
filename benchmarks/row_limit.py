"""Measure row 7: how far row 1's cold build is from what the disk and the downloads allow."""

from __future__ import annotations

import os
import time
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING

import peers
from row import GIGABYTE, Row
from row_gpu import Bench, Cold, bench, noted, ours

if TYPE_CHECKING:
    from pathlib import Path

BLOCK, BLOCKS = 4 << 20, 256
ABOUT = f"""\
imagegen's build of row 1. The limit is the bytes that it downloaded at the speed of the server
here, measured with the largest file, and the bytes that it left on the disk at the speed of writing
{BLOCK * BLOCKS / GIGABYTE:.1f} GB there and waiting until the disk has them. Nothing is counted for
unpacking, for running package managers, or for reading back what a layer is made of. No figure was
asked for."""


@dataclass(frozen=True)
class Limit:
    """Hold the bytes per second of the server and of the disk."""

    server: float
    disk: float

    def seconds(self, found: Cold) -> float:
        """Return the seconds that the bytes of a build take at these speeds."""
        return found.downloaded / self.server + found.disk_bytes / self.disk


def report() -> list[str]:
    """Return the section of the page."""
    return measured().lines()


def measured() -> Row:
    """Measure server and disk and compare the build of row 1."""
    found = noted("imagegen", ours)
    with bench() as one:
        limit = Limit(_server_speed(one), _disk_speed(one.engine.folder))
        versions = peers.versions(one.engine)
    own = found.contender("imagegen")
    times = own.median / limit.seconds(found)
    note = (
        f"{found.downloaded / GIGABYTE:.2f} GB downloaded at {limit.server / 1e6:.0f} MB/s and "
        f"{found.disk_bytes / GIGABYTE:.2f} GB left on the disk at {limit.disk / 1e6:.0f} MB/s "
        f"take {limit.seconds(found):.0f} s: the build takes {times:.1f} times that."
    )
    return Row(7, "downloads and the disk", ABOUT, versions, (own,), (), (note,))


def _server_speed(one: Bench) -> float:
    largest = max(one.server.wheels.iterdir(), key=lambda path: path.stat().st_size)
    started, size = time.perf_counter(), 0
    with urllib.request.urlopen(f"{one.server.url}/files/{largest.name}") as answer:
        while block := answer.read(BLOCK):
            size += len(block)
    return size / (time.perf_counter() - started)


def _disk_speed(folder: Path) -> float:
    """Return how many bytes per second reach the disk; the bytes do not compress."""
    path, block = folder / "speed", os.urandom(BLOCK)
    started = time.perf_counter()
    with path.open("wb") as file:
        for _ in range(BLOCKS):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
    taken = time.perf_counter() - started
    path.unlink()
    return BLOCK * BLOCKS / taken
