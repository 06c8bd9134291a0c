"""Keep the last result of each benchmark, and write the page of all results.

Benchmarks run one by one, on different days and commits, so each has its own date and commit.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

KEPT = Path(__file__).with_name("results.json")
PAGE = Path(__file__).with_name("RESULTS.md")

ABOUT = """\
Written by `make bench`, or by `benchmarks/run.py NAME …` for some of it; each part says when it was
measured and on what. Medians; where two are compared they took turns on one machine. Each compares
what the text above it says and no more."""


@dataclass(frozen=True)
class Result:
    """Hold the section of one benchmark with its heading, and with what it was measured."""

    lines: tuple[str, ...]
    measured: str


def kept() -> dict[str, Result]:
    """Read the last result of each benchmark, by name."""
    if not KEPT.exists():
        return {}
    data = json.loads(KEPT.read_text(encoding="utf-8"))
    return {name: Result(tuple(one["lines"]), one["measured"]) for name, one in data.items()}


def keep(results: Mapping[str, Result], order: Iterable[str]) -> None:
    """Write both files, with the results in this order."""
    ordered = {name: results[name] for name in order if name in results}
    data = {name: asdict(one) for name, one in ordered.items()}
    KEPT.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    lines = ["# Benchmarks", "", ABOUT, ""]
    for one in ordered.values():
        heading, *rest = one.lines
        lines += [heading, "", f"*{one.measured}*", *rest]
    PAGE.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
