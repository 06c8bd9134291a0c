"""Medians of wall and CPU seconds, of functions and of processes, and what they were taken on."""

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
    """Medians over some runs: `cpu` is user + system, of children where there are any."""

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
    """All contenders in turn, `runs` times over: what disturbs the machine disturbs all of them."""
    return {
        name: Seconds(median(w for w, _ in each), median(c for _, c in each), runs)
        for name, each in every_run(contenders, runs).items()
    }


def every_run(
    contenders: Mapping[str, Callable[[], object]], runs: int
) -> dict[str, list[tuple[float, float]]]:
    """The same, as wall and CPU seconds of every run."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
    for _ in range(runs):
        for name, call in contenders.items():
            taken[name].append(timed(call))
    return taken


def timed(call: Callable[[], object]) -> tuple[float, float]:
    """Wall and CPU seconds of one call."""
    wall, cpu = time.perf_counter(), _cpu()
    call()
    return time.perf_counter() - wall, _cpu() - cpu


def environment() -> dict[str, str]:
    """This process's, less what would have imagegen print or keep things elsewhere."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("IMAGEGEN_", "DOCKER_"))}


def output_of(command: Sequence[str | Path], **env: str) -> bytes:
    """Standard output of a program that must end well."""
    environ = {**os.environ, **env}
    return subprocess.run(command, env=environ, stdout=subprocess.PIPE, check=True).stdout


def commit() -> str:
    """Of the code that is measured."""
    command = ["git", "describe", "--always", "--dirty"]
    here = Path(__file__).parent
    found = subprocess.run(command, capture_output=True, text=True, check=False, cwd=here)
    return found.stdout.strip() or "no checkout"


def machine() -> str:
    """Processor, cores, load and Python, in one line."""
    models = [
        line.split(":", 1)[1].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    model = models[0] if models else platform.machine()
    return f"{model}, {os.cpu_count()} cores, load {load}; Python {platform.python_version()}"
