"""Measure row 4: 24 tiny cells from nothing, where scheduling is most of the work."""

from __future__ import annotations

import secrets
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import peers
from own_dockerd import OwnDockerd, own_dockerd
from row import Contender, Row, Target
from tiny_cells import CELLS, TinyCells

if TYPE_CHECKING:
    from collections.abc import Callable

RUNS = 5
ABOUT = """\
24 images of three layers, each `RUN echo … > file`; every round has steps that the engine never
saw. All build on one engine of their own with nothing but the base image, taking turns. imagegen's
images have a layer and its labels more (what the image is said to hold, the environment); it
builds without its gate, which peers have none of. docker-py has the classic builder alone."""

WHY = """\
56 layers to make for bake's 32: on top of every image is one of its own, what the image holds and
its environment; and the engine unpacks a context for every image, as its API takes them"""


def report() -> list[str]:
    """Return the section of the page."""
    return measured().lines()


def measured() -> Row:
    """Build the cells several times with every contender and measure."""
    with own_dockerd() as engine:
        taken: dict[str, list[tuple[float, float]]] = {}
        for _ in range(RUNS):
            for name, seconds in _round(engine).items():
                taken.setdefault(name, []).append(seconds)
        versions = peers.versions(engine)
    own, bake, _ = found = [Contender.of(name, runs) for name, runs in taken.items()]
    ratio = own.median / bake.median
    target = Target(
        "not slower than bake", f"{ratio:.2f} of its time", ratio <= 1, "" if ratio <= 1 else WHY
    )
    return Row(4, f"{CELLS} tiny cells, cold", ABOUT, versions, tuple(found), (target,))


def _round(engine: OwnDockerd) -> dict[str, tuple[float, float]]:
    """Measure one build of each contender, with steps that no other build has."""
    builds: dict[str, Callable[[OwnDockerd, TinyCells], None]] = {
        "imagegen": _imagegen,
        "bake": partial(_peer, peers.bake),
        "docker-py": partial(_peer, peers.docker_py),
    }
    return {name: _build(engine, build) for name, build in builds.items()}


def _build(
    engine: OwnDockerd, build: Callable[[OwnDockerd, TinyCells], None]
) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        cells = TinyCells(Path(folder), secrets.token_hex(4))
        cells.write()
        seconds = engine.timed(partial(build, engine, cells))
    made = [one for one in engine.images() if one.startswith(f"bench-{cells.token}/")]
    assert len(made) == CELLS, made
    return seconds


def _imagegen(engine: OwnDockerd, cells: TinyCells) -> None:
    peers.imagegen(engine, cells.overlay)


def _peer(build: peers.Build, engine: OwnDockerd, cells: TinyCells) -> None:
    build(engine, cells.folder, cells.peers())
