"""Measure wall and CPU seconds of functions and processes, and describe the machine."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


@dataclass(frozen=True)
class Seconds:
    """Hold the medians of some runs; `cpu` is user + system, with that of child processes."""

    wall: float
    cpu: float
    runs: int

    def __str__(self) -> str:
        return f"{self.wall:.3f} s ({self.cpu:.3f} s CPU, median of {self.runs})"


def _cpu() -> float:
    own, children = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def alternately(contenders: Mapping[str, Callable[[], object]], runs: int) -> dict[str, Seconds]:
    """Return the medians of contenders that run in turns, `runs` times each.

    They take turns so that other work on the machine slows all of them.
    """
    return {
        name: Seconds(median(w for w, _ in each), median(c for _, c in each), runs)
        for name, each in every_run(contenders, runs).items()
    }


def every_run(
    contenders: Mapping[str, Callable[[], object]], runs: int
) -> dict[str, list[tuple[float, float]]]:
    """Return the wall and CPU seconds of every run of contenders that run in turns."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
    for _ in range(runs):
        for name, call in contenders.items():
            taken[name].append(timed(call))
    return taken


def timed(call: Callable[[], object]) -> tuple[float, float]:
    """Return the wall and CPU seconds of one call."""
    wall, cpu = time.perf_counter(), _cpu()
    call()
    return time.perf_counter() - wall, _cpu() - cpu


def environment() -> dict[str, str]:
    """Return the environment of this process without the settings of imagegen and Docker.

    They would make imagegen print or keep things elsewhere.
    """
    return {k: v for k, v in os.environ.items() if not k.startswith(("IMAGEGEN_", "DOCKER_"))}


def output_of(command: Sequence[str | Path], **env: str) -> bytes:
    """Return the standard output of a program, which has to succeed."""
    environ = {**os.environ, **env}
    return subprocess.run(command, env=environ, stdout=subprocess.PIPE, check=True).stdout


def commit() -> str:
    """Return the commit of the code that is measured."""
    command = ["git", "describe", "--always", "--dirty"]
    here = Path(__file__).parent
    found = subprocess.run(command, capture_output=True, text=True, check=False, cwd=here)
    return found.stdout.strip() or "no checkout"


def machine() -> str:
    """Describe processor, cores, load and Python in one line."""
    models = [
        line.split(":", 1)[1].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    model = models[0] if models else platform.machine()
    return f"{model}, {os.cpu_count()} cores, load {load}; Python {platform.python_version()}"
