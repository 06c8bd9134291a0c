"""Row 7: how far a cold build of row 1's family is from what the disk and the downloads allow."""

from __future__ import annotations

import os
import time
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING

import peers
from row import GIGABYTE, Row, Target
from row_gpu import CELLS, Bench, Cold, bench

if TYPE_CHECKING:
    from pathlib import Path

BLOCK, BLOCKS = 4 << 20, 256
ABOUT = f"""\
imagegen builds the {CELLS} images of row 1 once more from nothing. The limit is the bytes that it
downloaded at the speed of the server here, measured right before with the largest file, and the
bytes that it left on the disk at the speed of writing {BLOCK * BLOCKS / GIGABYTE:.1f} GB there and
waiting for the disk to have them, measured right before and right after (the mean). Nothing is
counted for unpacking, for running package managers, or for reading back what a layer is made of."""


@dataclass(frozen=True)
class Limit:
    """Bytes a second of the server and of the disk."""

    server: float
    disk: float

    def seconds(self, found: Cold) -> float:
        return found.downloaded / self.server + found.disk_bytes / self.disk


def report() -> list[str]:
    return measured().lines()


def measured() -> Row:
    with bench() as one:
        server, before = _server_speed(one), _disk_speed(one.engine.folder)
        found = one.cold(
            lambda: peers.imagegen(one.engine, one.family.overlay, **one.server.environ), CELLS
        )
        disk = (before + _disk_speed(one.engine.folder)) / 2
        versions = peers.versions(one.engine)
    limit = Limit(server, disk)
    own = found.contender("imagegen")
    times = own.median / limit.seconds(found)
    note = (
        f"{found.downloaded / GIGABYTE:.2f} GB downloaded at {server / 1e6:.0f} MB/s, "
        f"{found.disk_bytes / GIGABYTE:.2f} GB left on the disk at {disk / 1e6:.0f} MB/s: "
        f"{limit.seconds(found):.0f} s"
    )
    target = Target(
        "how far from the limit (no figure was asked for)", f"{times:.1f} times it", True
    )
    return Row(7, "downloads and the disk", ABOUT, versions, (own,), (target,), (note + ".",))


def _server_speed(one: Bench) -> float:
    largest = max(one.server.wheels.iterdir(), key=lambda path: path.stat().st_size)
    started, size = time.perf_counter(), 0
    with urllib.request.urlopen(f"{one.server.url}/files/{largest.name}") as answer:
        while block := answer.read(BLOCK):
            size += len(block)
    return size / (time.perf_counter() - started)


def _disk_speed(folder: Path) -> float:
    """Of bytes that do not compress, to the disk itself."""
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
