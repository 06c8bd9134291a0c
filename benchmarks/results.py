"""What was measured, benchmark by benchmark, and the page that is made of it.

Benchmarks are run one by one, on other days and commits: each keeps its own.
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
    """The section of one benchmark, with its heading, and what it was measured with."""

    lines: tuple[str, ...]
    measured: str


def kept() -> dict[str, Result]:
    """Name of a benchmark -> its last result."""
    if not KEPT.exists():
        return {}
    data = json.loads(KEPT.read_text(encoding="utf-8"))
    return {name: Result(tuple(one["lines"]), one["measured"]) for name, one in data.items()}


def keep(results: Mapping[str, Result], order: Iterable[str]) -> None:
    """Write both files, in this order."""
    ordered = {name: results[name] for name in order if name in results}
    data = {name: asdict(one) for name, one in ordered.items()}
    KEPT.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    lines = ["# Benchmarks", "", ABOUT, ""]
    for one in ordered.values():
        heading, *rest = one.lines
        lines += [heading, "", f"*{one.measured}*", *rest]
    PAGE.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
