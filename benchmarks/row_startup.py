"""Measure row 6: the time of `imagegen --help`, `imagegen list` and `docker buildx --help`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from statistics import median

import measure
import peer_bake
from row import Contender, Row, Target

RUNS = 21
LIMIT = 0.150
ABOUT = """\
Process start to its end, caches of the run before in place, taking turns."""


def report() -> list[str]:
    """Return the section of the page."""
    return measured().lines()


def measured() -> Row:
    """Measure the three commands in turns."""
    own = str(Path(sys.executable).with_name("imagegen"))
    commands = {
        "`imagegen --help`": [own, "--help"],
        "`imagegen list`": [own, "list"],
        "`docker buildx --help`": [peer_bake.program(), "--help"],
    }
    with tempfile.TemporaryDirectory() as folder:
        run = partial(subprocess.run, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        calls = {name: partial(run, command) for name, command in commands.items()}
        for call in calls.values():
            call()
        taken = measure.every_run(calls, RUNS)
    contenders = tuple(Contender.of(name, runs) for name, runs in taken.items())
    version = measure.output_of([peer_bake.program(), "version"]).decode().split()[1]
    targets = tuple(_target(one) for one in contenders[:2])
    return Row(6, "start-up", ABOUT, f"buildx {version}", contenders, targets)


def _target(one: Contender) -> Target:
    spent = median(one.cpu)
    found = f"{one.median * 1000:.0f} ms, of them {spent * 1000:.0f} ms on a core"
    met = one.median < LIMIT
    why = ""
    if not met:
        why = "the program itself takes longer"
        if spent < LIMIT:
            why = "it waited for a core: the machine had other work"
    return Target(f"{one.name} under {LIMIT * 1000:.0f} ms", found, met, why)
