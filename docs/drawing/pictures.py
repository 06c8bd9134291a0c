"""Name all pictures.

They are made of data in this repository alone, with the same bytes each time.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from build_screen import build_screen
from failed_check import failed_check
from flow import flow
from house import house
from plan_trees import plan_trees

if TYPE_CHECKING:
    from collections.abc import Callable

DOCS = Path(__file__).parents[1]
RECORDED = Path(__file__).with_name("recorded")
PICTURES: dict[str, Callable[[], str]] = {
    "build.svg": lambda: build_screen(RECORDED / "build.events"),
    "failed-check.svg": lambda: failed_check(RECORDED / "failed-check.json"),
    "flow.svg": flow,
    "house.svg": lambda: house(DOCS / "architecture.md"),
    "plan.svg": plan_trees,
}


def draw(name: str) -> str:
    """Draw the picture of a name."""
    return PICTURES[name]()
