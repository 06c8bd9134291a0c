"""Measure row 3: one small component of 24 cells is changed."""

from __future__ import annotations

import re
import secrets
import sqlite3
import tempfile
from contextlib import closing
from functools import partial
from pathlib import Path

import peers
from own_dockerd import OwnDockerd, own_dockerd
from row import Contender, Row, Target
from tiny_cells import CELLS, TinyCells

RUNS = 3
LIMIT = 1.2
SLEEP = "1"
ABOUT = f"""\
The cells of row 4, with a step of the changed component working for {SLEEP} s (it sleeps, so that
cores do not count). The planner has it at the top, in as many distinct steps as cells; its cost is
the sum of their seconds as the journal has them, which `--jobs` (here the default, of cores and
memory) divides. The peers' Dockerfiles have it at the top too, and get the same change."""


def report() -> list[str]:
    """Return the section of the page."""
    return measured().lines()


def measured() -> Row:
    """Change the component several times and measure every contender."""
    taken: dict[str, list[tuple[float, float]]] = {"imagegen": [], "bake": [], "docker-py": []}
    costs = []
    with tempfile.TemporaryDirectory() as folder, own_dockerd() as engine:
        cells = TinyCells(Path(folder), secrets.token_hex(4), SLEEP)
        _build(engine, cells, "")
        for at in range(RUNS):
            for name, seconds in _build(engine, cells, f" {at}").items():
                taken[name].append(seconds)
            costs.append(_cost(engine))
        jobs, versions = _jobs(cells), peers.versions(engine)
    own, bake, loop = (Contender.of(name, runs) for name, runs in taken.items())
    cost = sorted(costs)[len(costs) // 2]
    ratio = own.median / cost
    target = Target(
        f"at most {LIMIT} of the cost of that component's distinct steps",
        f"{ratio:.2f} of {cost:.1f} s, and {own.median / (cost / jobs):.2f} of the least that "
        f"{jobs} builds at a time allow",
        ratio <= LIMIT,
    )
    title = f"one small component changed, {CELLS} cells"
    return Row(3, title, ABOUT, versions, (own, bake, loop), (target,))


def _build(engine: OwnDockerd, cells: TinyCells, edit: str) -> dict[str, tuple[float, float]]:
    cells.write(edit)
    builds = {
        "imagegen": partial(peers.imagegen, engine, cells.overlay),
        "bake": partial(peers.bake, engine, cells.folder, cells.peers(edit)),
        "docker-py": partial(peers.docker_py, engine, cells.folder, cells.peers(edit)),
    }
    return {name: engine.timed(build) for name, build in builds.items()}


def _cost(engine: OwnDockerd) -> float:
    """Return the seconds of the uncached steps of the changed component in the last run."""
    path = Path(engine.environ["IMAGEGEN_STATE"], "journal.db")
    with closing(sqlite3.connect(path)) as journal:
        query = """
            SELECT sum(s.seconds), count(*) FROM steps s JOIN builds b ON b.id = s.build_id
            WHERE b.run_id = (SELECT max(id) FROM runs)
            AND s.component = 'settings' AND NOT s.cached
        """
        seconds, count = journal.execute(query).fetchone()
    assert count == CELLS, f"{count} distinct steps were made"
    return float(seconds)


def _jobs(cells: TinyCells) -> int:
    """Return how many cells the last build made at a time, from its log."""
    found = re.search(r"(\d+) at a time", (cells.overlay.folder / "imagegen.log").read_text())
    assert found is not None
    return int(found[1])
