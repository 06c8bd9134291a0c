"""Run every benchmark, one after the other, and write RESULTS.md (`make bench`).

`run.py NAME …` runs some of them and keeps the results of the others.
"""

from __future__ import annotations

import sys
import time
from importlib import import_module

import measure
import results

from imagegen import __version__

BENCHMARKS = (
    "row_gpu",
    "row_unchanged",
    "row_changed",
    "row_cold",
    "row_startup",
    "row_limit",
    "request_latency",
    "cells",
    "peer_hpccm",
    "peer_bake",
    "peer_static",
)
"""Modules with a function `report`, which returns the lines of a section. In the order of the page.
"""


def main(names: list[str]) -> None:
    """Run the named benchmarks, or all; keep each result as soon as it is there."""
    unknown = set(names) - set(BENCHMARKS)
    if unknown:
        sys.exit(f"no such benchmark: {', '.join(sorted(unknown))}; there are {BENCHMARKS}")
    found, commit = results.kept(), measure.commit()  # the commit first: the page changes below
    for name in names or BENCHMARKS:
        print(f"{name} …", file=sys.stderr, flush=True)
        lines = import_module(name).report()
        what = f"{time.strftime('%Y-%m-%d')}, imagegen {__version__} ({commit})"
        found[name] = results.Result(tuple(lines), f"{what}. {measure.machine()}.")
        results.keep(found, BENCHMARKS)
        print("\n".join(lines), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
