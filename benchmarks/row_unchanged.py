"""Measure row 2: 24 cells of which nothing changed since they were built."""

from __future__ import annotations

import re
import secrets
import tempfile
from functools import partial
from pathlib import Path

import peers
from own_dockerd import OwnDockerd, own_dockerd
from row import Contender, Row, Target
from tiny_cells import CELLS, TinyCells

RUNS = 9
LIMIT = 0.1
ABOUT = """\
The images of row 4, asked for again. That imagegen knows whether they exist is tried as well: one
tag is taken away, and the next run has to make that image again and no other."""


def report() -> list[str]:
    """Return the section of the page."""
    return measured().lines()


def measured() -> Row:
    """Build the cells with every contender, then measure builds without any change."""
    with tempfile.TemporaryDirectory() as folder, own_dockerd() as engine:
        cells = TinyCells(Path(folder), secrets.token_hex(4))
        cells.write()
        builds = {
            "imagegen": partial(peers.imagegen, engine, cells.overlay),
            "bake": partial(peers.bake, engine, cells.folder, cells.peers()),
            "docker-py": partial(peers.docker_py, engine, cells.folder, cells.peers()),
        }
        for build in builds.values():
            build()
        before = engine.images()
        taken: dict[str, list[tuple[float, float]]] = {name: [] for name in builds}
        for _ in range(RUNS):
            for name, build in builds.items():
                taken[name].append(engine.timed(build))
        assert engine.images() == before, "an image was built anew"
        proof = _proof(engine, cells)
        versions = peers.versions(engine)
    own, bake, loop = (Contender.of(name, runs) for name, runs in taken.items())
    ratio = own.median / bake.median
    why = "" if ratio <= LIMIT else _why(own, bake)
    speed = Target(f"at most {LIMIT} of bake's time", f"{ratio:.2f} of it", ratio <= LIMIT, why)
    return Row(
        2, f"nothing changed, {CELLS} cells", ABOUT, versions, (own, bake, loop), (speed, proof)
    )


def _proof(engine: OwnDockerd, cells: TinyCells) -> Target:
    """Remove one image's tag: the next run has to notice it, and to make only that image."""
    before = engine.images()
    lost = next(one for one in before if one.startswith(f"{cells.overlay.repository}:"))
    engine.docker("image", "rm", "--no-prune", lost)
    assert lost not in engine.images()
    peers.imagegen(engine, cells.overlay)
    after = engine.images()
    made = re.findall(r"^tiny/\S+ +built ", _told(cells), re.MULTILINE)
    rest = {one: image for one, image in before.items() if one != lost}
    there = lost in after and len(made) == 1 and rest.items() <= after.items()
    found = f"the image that lost its tag is there again, {len(made)} was built"
    return Target("proves that the images exist", found, there)


def _told(cells: TinyCells) -> str:
    return (cells.overlay.folder / "imagegen.log").read_text()


def _why(own: Contender, bake: Contender) -> str:
    return (
        f"bake's {bake.median:.2f} s leave {bake.median * LIMIT * 1000:.0f} ms, less than Python "
        f"takes to start with what imagegen needs ({min(own.cpu) * 1000:.0f} ms of CPU in all)"
    )
