"""The layers of one family in two orders: as its matrix names the components, and as planned."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from svg import BOLD, LEFT, Box, joint, picture, text

from imagegen.planner.cost import Prices, Step, declared_order, made_anew, total, tree, walk
from imagegen.text import human_seconds
from imagegen.workflow.project import Project

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

MATRIX = "debian-cu124"
EDITED = "validate"
WIDTH, HEIGHT, STEP, ROW = 124, 36, 138, 46
LEFT_SIDE, HEAD = 14, 34
SHADES = ((5, "#f7fbff"), (15, "#e3eefa"), (30, "#c6dbef"), (60, "#9ecae1"), (10**9, "#6baed6"))
"""Up to so many seconds -> the colour of a layer."""


def plan_trees() -> str:
    """Draw both trees, one above the other; a darker layer takes longer."""
    project = Project()
    family = project.family(MATRIX)
    ((_, order),) = family.orders.items()
    prices = Prices(project.catalog, {})
    declared = declared_order(family.specs, order, project.catalog)
    body: list[str] = []
    top = 0.0
    for title, names in (("In the order of the matrix", declared), ("As planned", order)):
        steps = tree(family.specs, names, prices)
        drawn, height = panel(steps, top + HEAD)
        body += [text(LEFT_SIDE, top + 22, heading(title, steps), 13, f"{LEFT} {BOLD}"), *drawn]
        top += HEAD + height + 8
    width = LEFT_SIDE + len(order) * STEP
    return picture(width, top, f"The layers of {MATRIX} in two orders", body)


def heading(title: str, steps: Sequence[Step]) -> str:
    """Say what the tree costs from nothing, and after an edit."""
    whole, edit = total(steps), total(made_anew(steps, EDITED))
    return (
        f"{title}: {whole.steps} layers, {human_seconds(whole.seconds)} from nothing; "
        f"{human_seconds(edit.seconds)} after an edit of {EDITED}"
    )


def panel(steps: Sequence[Step], top: float) -> tuple[list[str], float]:
    """Place the boxes and lines of a tree, and say how high it is.

    Each chain without a fork is a row.
    """
    rows, releases = count(), {step.chain[-1] for step in walk(steps)}
    body = [one for step in steps for one in draw(step, next(rows), rows, top, releases)]
    return body, next(rows) * ROW


def draw(
    step: Step, row: int, rows: Iterator[int], top: float, releases: Collection[tuple[str, str]]
) -> list[str]:
    """Place a layer, and the layers on it to its right: the first one in its own row."""
    left = LEFT_SIDE + (len(step.chain) - 1) * STEP
    box = Box(left, top + row * ROW, WIDTH, HEIGHT, shade(step.cost.seconds))
    images = f"{len(step.cells)} images" if len(step.cells) > 1 else "1 image"
    below = f"{human_seconds(step.cost.seconds)}, {images}"
    found = [box.draw, text(box.middle, box.y + 15, label(step, releases), 11, BOLD)]
    found.append(text(box.middle, box.y + 29, below, 11))
    for place, above in enumerate(step.above):
        there = row if place == 0 else next(rows)
        y = top + there * ROW + HEIGHT / 2
        middle, right = box.y + HEIGHT / 2, box.right
        found.append(joint([(right, middle), (right + 7, middle), (right + 7, y), (right + 14, y)]))
        found += draw(above, there, rows, top, releases)
    return found


def label(step: Step, others: Collection[tuple[str, str]]) -> str:
    """Name the component and its version.

    The last word of the release follows where versions are alike.
    """
    words = step.release.split()
    same = {one for one in others if one[0] == step.component and one[1].split()[0] == words[0]}
    last = f" {words[-1]}" if len(same) > 1 else ""
    return f"{step.component} {words[0].split('+')[0]}{last}"


def shade(seconds: float) -> str:
    """Return the colour of a layer that takes these seconds."""
    return next(colour for most, colour in SHADES if seconds <= most)
