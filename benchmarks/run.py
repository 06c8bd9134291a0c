"""`make bench`: every benchmark here, one after the other, into RESULTS.md."""

from __future__ import annotations

import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import cells
import measure
import peer_bake
import peer_hpccm
import request_latency

from imagegen import __version__

RESULTS = Path(__file__).with_name("RESULTS.md")

ABOUT = """\
Written by `make bench`. Medians; where two are compared they took turns on one machine. Each
compares what the text above it says and no more."""


def commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    found = subprocess.run(command, capture_output=True, text=True, check=False, cwd=RESULTS.parent)
    return found.stdout.strip() or "no checkout"


def main() -> None:
    what = f"imagegen {__version__} ({commit()}), hpccm {version('hpccm')}"
    when = f"{time.strftime('%Y-%m-%d')}, {what}. {measure.machine()}."
    lines = [
        "# Benchmarks",
        "",
        ABOUT,
        "",
        when,
        "",
    ]
    for benchmark in (request_latency, cells, peer_hpccm, peer_bake):
        print(f"{benchmark.__name__} …", file=sys.stderr, flush=True)
        lines += benchmark.report()
    RESULTS.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    print(RESULTS.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
