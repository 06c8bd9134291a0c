"""Measure how long a user waits for `imagegen request`, from start to end of the process."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

import measure

RUNS = 15
ASKED = (
    "os=ubuntu22.04 torch=2.4.0",
    "torch=1.11 cuda=11.3 ofed=5.4",
    "os=debian12 torch=any",
    "cuda=9.0 os=ubuntu18.04",
    "horovod=0.28.1 cuda=12.1",
)

ABOUT = """\
`imagegen request …`, process start included, median of {runs}; the catalog comes from the cache of
the run before, and the engine is asked for an image of the answer's tag. Exit code 4 is an
impossible request: the reason and the nearest combinations."""


def report() -> list[str]:
    """Measure some requests and return the section of the page."""
    program = Path(sys.executable).with_name("imagegen")

    def ask(words: str) -> int:
        command: list[str | Path] = [program, "request", *words.split()]
        return subprocess.run(command, capture_output=True, check=False).returncode

    codes = {words: ask(words) for words in ASKED}  # the very first run fills the cache
    taken = measure.alternately({words: partial(ask, words) for words in ASKED}, RUNS)
    return [
        "## A request",
        "",
        ABOUT.format(runs=RUNS),
        "",
        "| request | exit code | wall | CPU |",
        "|---|---:|---:|---:|",
        *(
            f"| `{words}` | {codes[words]} | {one.wall * 1000:.0f} ms | {one.cpu * 1000:.0f} ms |"
            for words, one in taken.items()
        ),
        "",
    ]
