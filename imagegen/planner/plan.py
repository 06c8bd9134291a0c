"""Plan a build: the state of each cell, and the shared steps that are still to make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from imagegen.planner.chain import chain_of
from imagegen.planner.cost import (
    declared_order,
    made_anew,
    missing,
    plus,
    prefixes,
    total,
    tree,
    unshared,
    walk,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from imagegen.model.catalog import Catalog
    from imagegen.model.image import ImageSpec
    from imagegen.planner.chain import Chain
    from imagegen.planner.cost import Prices, Step, Total

UP_TO_DATE, STALE, BLOCKED = "up to date", "stale", "blocked"


@dataclass(frozen=True)
class PlannedCell:
    """A cell before a build.

    `state` is one of the three above, `why` a reason in one line, `changes` all of them.
    """

    spec: ImageSpec
    state: str
    why: str = ""
    changes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """The order of layers for each OS id, its steps, the steps as declared, and those to make.

    `most_edited` is the component of these steps that changes most often, by its `churn`.
    """

    orders: Mapping[str, tuple[str, ...]]
    steps: Mapping[str, tuple[Step, ...]]
    declared: Mapping[str, tuple[Step, ...]]
    to_make: Mapping[str, tuple[Step, ...]]
    cells: tuple[PlannedCell, ...]
    most_edited: str = ""

    @property
    def whole(self) -> Total:
        """Sum all steps in the planned order, each made once."""
        return plus([total(steps) for steps in self.steps.values()])

    @property
    def each_by_itself(self) -> Total:
        """Sum all steps, as if each cell were built alone."""
        return plus([unshared(steps) for steps in self.steps.values()])

    @property
    def as_declared(self) -> Total:
        """Sum all steps in the order that the matrix declares."""
        return plus([total(steps) for steps in self.declared.values()])

    @property
    def edit_as_planned(self) -> Total:
        """Sum what the next edit costs: the layers that a change of `most_edited` makes again."""
        return self._edit(self.steps)

    @property
    def edit_as_declared(self) -> Total:
        """Sum what the same edit costs in the order that the matrix declares."""
        return self._edit(self.declared)

    def _edit(self, trees: Mapping[str, Sequence[Step]]) -> Total:
        return plus([total(made_anew(steps, self.most_edited)) for steps in trees.values()])

    @property
    def left(self) -> Total:
        """Sum the steps that are still to make."""
        return plus([total(steps) for steps in self.to_make.values()])


def plan_of(
    cells: Sequence[PlannedCell],
    orders: Mapping[str, tuple[str, ...]],
    prices: Prices,
    catalog: Catalog,
) -> Plan:
    """Arrange the steps of a family's cells in their orders, and find those to make."""
    orders = {os_id: orders[os_id] for os_id in sorted({cell.spec.os.id for cell in cells})}
    steps, declared, to_make = {}, {}, {}
    for os_id, order in orders.items():
        of_os = [cell for cell in cells if cell.spec.os.id == os_id]
        found = [cell.spec for cell in of_os]
        steps[os_id] = tree(found, order, prices)
        declared[os_id] = tree(found, declared_order(found, order, catalog), prices)
        to_make[os_id] = missing(steps[os_id], _made(of_os, order))
    return Plan(orders, steps, declared, to_make, tuple(cells), _most_edited(cells, catalog))


def _most_edited(cells: Sequence[PlannedCell], catalog: Catalog) -> str:
    names = {pin.component for cell in cells for pin in cell.spec.pins}
    return min(names, key=lambda name: (-catalog.components[name].churn, name), default="")


def _made(cells: Sequence[PlannedCell], order: Sequence[str]) -> set[Chain]:
    """List the layers of the images that are up to date."""
    return prefixes([chain_of(cell.spec, order) for cell in cells if cell.state == UP_TO_DATE])


def dot(plan: Plan) -> str:
    """Draw the steps as a graph for Graphviz; steps to make are filled."""
    lines = ["digraph plan {", '  rankdir="LR"; node [shape=box fontname="sans-serif"];']
    for os_id, steps in plan.steps.items():
        waiting = {step.chain for step in walk(plan.to_make[os_id])}
        lines.append(f'  "{os_id}" [shape=ellipse];')
        for step in walk(steps):
            name, below = _node(os_id, step.chain), _node(os_id, step.chain[:-1])
            style = " style=filled fillcolor=lightyellow" if step.chain in waiting else ""
            text = f"{step.component} {step.release}\\n{step.cost.seconds:.0f} s"
            lines += [f'  "{name}" [label="{text}"{style}];', f'  "{below}" -> "{name}";']
    return "\n".join([*lines, "}"])


def _node(os_id: str, chain: Chain) -> str:
    return "/".join([os_id, *(f"{component} {release}" for component, release in chain)])


def as_data(plan: Plan) -> dict[str, object]:
    """Write the plan for programs."""
    return {
        "orders": {os_id: list(order) for os_id, order in plan.orders.items()},
        "steps": {os_id: [_step_data(one) for one in s] for os_id, s in plan.steps.items()},
        "totals": {
            "distinct": vars(plan.whole),
            "each_by_itself": vars(plan.each_by_itself),
            "as_declared": vars(plan.as_declared),
            "to_make": vars(plan.left),
        },
        "next_edit": {
            "component": plan.most_edited,
            "as_planned": vars(plan.edit_as_planned),
            "as_declared": vars(plan.edit_as_declared),
        },
        "cells": [
            {
                "cell": cell.spec.cell.name,
                "image": cell.spec.tag,
                "state": cell.state,
                "stale": cell.state == STALE,
                "why": cell.why,
                "changes": list(cell.changes),
            }
            for cell in plan.cells
        ],
    }


def _step_data(step: Step) -> dict[str, object]:
    return {
        "component": step.component,
        "release": step.release,
        "seconds": step.cost.seconds,
        "size_bytes": step.cost.size_bytes,
        "measured": step.cost.measured,
        "cells": list(step.cells),
        "above": [_step_data(one) for one in step.above],
    }
