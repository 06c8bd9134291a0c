"""Measure how long it takes to expand, resolve and render many cells, in one process on one core.

`python benchmarks/cells.py CELLS` does it once, and prints the seconds and a digest of all recipes.
"""

from __future__ import annotations

import hashlib
import json
import resource
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import measure

import matrices
from imagegen.workflow.project import Project

SIZES = {1000: 5, 3000: 3, 10_000: 3}
"""Cells -> runs."""

ABOUT = """\
The product of 5 axes of real versions (flavour, torch, cuDNN, NCCL, Open MPI) on Ubuntu 22.04 with
CUDA 12.4; every cell has a Dockerfile, a context of about 100 files and a digest of its own. One
process on one core; CPU seconds, with the catalog's reading, without Python's start."""


def once(cells: int) -> dict[str, Any]:
    """Measure one run, in CPU seconds: up to the order of layers, and Dockerfiles with contexts."""
    with tempfile.TemporaryDirectory() as folder:
        name = matrices.write(Path(folder), cells)
        project = Project(Path(folder))
        started = time.process_time()
        family = project.family(name)
        resolved = time.process_time()
        recipes = project.recipes(family)
        rendered = time.process_time()
    digests = [recipe.digest for recipe in recipes]
    assert len(set(digests)) == len(recipes) == cells
    return {
        "resolve": resolved - started,
        "render": rendered - resolved,
        "total": rendered - started,
        "digest": hashlib.sha256("".join(digests).encode()).hexdigest()[:12],
        "mebibytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def report() -> list[str]:
    """Measure each size in processes of their own and return the section of the page."""
    lines = [
        "## A large matrix: expand, resolve, render",
        "",
        ABOUT,
        "",
        "| cells | expand + resolve + order | render | total | ms a cell | memory |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    for cells, runs in SIZES.items():
        found = []
        for _ in range(runs):
            printed = measure.output_of([sys.executable, __file__, str(cells)])
            found.append(json.loads(printed))
        assert len({one["digest"] for one in found}) == 1
        middle = {key: median(one[key] for one in found) for key in ("resolve", "render", "total")}
        lines.append(
            f"| {cells} | {middle['resolve']:.2f} s | {middle['render']:.2f} s | "
            f"{middle['total']:.2f} s | {middle['total'] / cells * 1000:.2f} | "
            f"{median(one['mebibytes'] for one in found):.0f} MiB |"
        )
    return [*lines, ""]


if __name__ == "__main__":
    print(json.dumps(once(int(sys.argv[1]))))
