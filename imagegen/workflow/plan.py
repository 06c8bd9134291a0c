"""What a build of some cells would do: what is stale and why, the tree of steps, what it costs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from imagegen.builder.stale import find_stale
from imagegen.engine.images import bases
from imagegen.errors import Problem, RenderError
from imagegen.model.base import base_of
from imagegen.planner.chain import chain_of
from imagegen.planner.cost import (
    Cost,
    Prices,
    declared_order,
    missing,
    plus,
    prefixes,
    total,
    tree,
    unshared,
    walk,
)
from imagegen.sources.mirrors import rewrite_image
from imagegen.sources.supply import gone, lacking

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from imagegen.engine.client import Engine
    from imagegen.journal.journal import Journal
    from imagegen.model.image import ImageSpec
    from imagegen.model.recipe import Recipe
    from imagegen.planner.chain import Chain
    from imagegen.planner.cost import Step, Total
    from imagegen.sources.supply import Store
    from imagegen.workflow.project import Family, Project

UP_TO_DATE, STALE, BLOCKED = "up to date", "stale", "blocked"


@dataclass(frozen=True)
class PlannedCell:
    """A cell before a build: `state` is one of the three above, `why` one line, `changes` all."""

    spec: ImageSpec
    state: str
    why: str = ""
    changes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Planned:
    """Per OS id: the order of layers, the steps in it, in the declared order, and still to make."""

    orders: Mapping[str, tuple[str, ...]]
    steps: Mapping[str, tuple[Step, ...]]
    declared: Mapping[str, tuple[Step, ...]]
    to_make: Mapping[str, tuple[Step, ...]]
    cells: tuple[PlannedCell, ...]

    @property
    def whole(self) -> Total:
        return plus([total(steps) for steps in self.steps.values()])

    @property
    def each_by_itself(self) -> Total:
        return plus([unshared(steps) for steps in self.steps.values()])

    @property
    def as_declared(self) -> Total:
        return plus([total(steps) for steps in self.declared.values()])

    @property
    def left(self) -> Total:
        return plus([total(steps) for steps in self.to_make.values()])


def prices_of(project: Project, book: Journal) -> Prices:
    """What steps cost: as measured on this engine, else as their component.yaml predicts."""
    measured = book.step_costs()
    return Prices(project.catalog, {key: Cost(*cost, True) for key, cost in measured.items()})


def measured_seconds(book: Journal) -> dict[str, float]:
    """Component -> the seconds of its slowest release, for orders that follow the journal."""
    found: dict[str, float] = {}
    for (component, _), (seconds, _) in book.step_costs().items():
        if seconds:
            found[component] = max(seconds, found.get(component, 0.0))
    return found


def plan_cells(
    engine: Engine,
    project: Project,
    family: Family,
    specs: Sequence[ImageSpec],
    prices: Prices,
    store: Store,
) -> Planned:
    """The plan for these cells of a family."""
    cells = judge(engine, project, family, specs, store)
    orders = {os_id: family.orders[os_id] for os_id in sorted({spec.os.id for spec in specs})}
    steps, declared, to_make = {}, {}, {}
    for os_id, order in orders.items():
        of_os = [cell for cell in cells if cell.spec.os.id == os_id]
        found = [cell.spec for cell in of_os]
        steps[os_id] = tree(found, order, prices)
        declared[os_id] = tree(found, declared_order(found, order, project.catalog), prices)
        to_make[os_id] = missing(steps[os_id], _there(of_os, order))
    return Planned(orders, steps, declared, to_make, tuple(cells))


def _there(cells: Sequence[PlannedCell], order: Sequence[str]) -> set[Chain]:
    return prefixes([chain_of(cell.spec, order) for cell in cells if cell.state == UP_TO_DATE])


def judge(
    engine: Engine, project: Project, family: Family, specs: Sequence[ImageSpec], store: Store
) -> list[PlannedCell]:
    """Each cell: up to date, stale, or blocked by what no build can do without."""
    recipes, blocked = _recipes(project, family, specs, store)
    found = {s.recipe.spec.cell.id: s for s in find_stale(engine, recipes, force=False)}
    blocked |= _out_of_reach(engine, [s.recipe for s in found.values() if s.why], store)
    cells = []
    for spec in specs:
        problem = blocked.get(spec.cell.id)
        if problem is not None:
            cells.append(PlannedCell(spec, BLOCKED, problem.text, problem.evidence))
        else:
            one = found[spec.cell.id]
            state = STALE if one.why else UP_TO_DATE
            cells.append(PlannedCell(spec, state, one.why, one.changes))
    return cells


def _recipes(
    project: Project, family: Family, specs: Sequence[ImageSpec], store: Store
) -> tuple[list[Recipe], dict[str, Problem]]:
    """The recipes of the cells, and by id the cells without a template or without their parts."""
    recipes: list[Recipe] = []
    blocked: dict[str, Problem] = {}
    for spec in specs:
        try:
            recipe = project.recipe(family, spec)
        except RenderError as error:
            blocked[spec.cell.id] = error.problems[0]
            continue
        problems = lacking(recipe.parts, store)
        if problems:
            blocked[spec.cell.id] = problems[0]
        else:
            recipes.append(recipe)
    return recipes, blocked


def _out_of_reach(engine: Engine, stale: Sequence[Recipe], store: Store) -> dict[str, Problem]:
    """By id the cells to build whose base, or a part of which, nobody has; all asked at once."""
    wanted = {(base_of(one.spec), one.spec.cell.base) for one in stale}
    with ThreadPoolExecutor(max(1, len(wanted))) as pool:
        asked = {
            (base.id, mode): pool.submit(
                bases.lacking, engine, base, mode, rewrite_image(base.image, store.mirrors)
            )
            for base, mode in wanted
        }
        parts = gone([part for one in stale for part in one.parts], store)
    found: dict[str, Problem] = {}
    for recipe in stale:
        spec, base = recipe.spec, base_of(recipe.spec)
        why = asked[base.id, spec.cell.base].result()
        missing = [parts[part] for part in recipe.parts if part in parts]
        if why:
            found[spec.cell.id] = Problem(f"its base `{base.image}` cannot be had: {why}")
        elif missing:
            found[spec.cell.id] = missing[0]
    return found


def dot(planned: Planned) -> str:
    """The tree as a graph for Graphviz: what has to be made is filled."""
    lines = ["digraph plan {", '  rankdir="LR"; node [shape=box fontname="sans-serif"];']
    for os_id, steps in planned.steps.items():
        waiting = {step.chain for step in walk(planned.to_make[os_id])}
        lines.append(f'  "{os_id}" [shape=ellipse];')
        for step in walk(steps):
            name, below = _node(os_id, step.chain), _node(os_id, step.chain[:-1])
            style = " style=filled fillcolor=lightyellow" if step.chain in waiting else ""
            text = f"{step.component} {step.release}\\n{step.cost.seconds:.0f} s"
            lines += [f'  "{name}" [label="{text}"{style}];', f'  "{below}" -> "{name}";']
    return "\n".join([*lines, "}"])


def _node(os_id: str, chain: Chain) -> str:
    return "/".join([os_id, *(f"{component} {release}" for component, release in chain)])


def as_data(planned: Planned) -> dict[str, object]:
    """The plan for programs."""
    return {
        "orders": {os_id: list(order) for os_id, order in planned.orders.items()},
        "steps": {os_id: [_step_data(one) for one in s] for os_id, s in planned.steps.items()},
        "totals": {
            "distinct": vars(planned.whole),
            "each_by_itself": vars(planned.each_by_itself),
            "as_declared": vars(planned.as_declared),
            "to_make": vars(planned.left),
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
            for cell in planned.cells
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
