"""`imagegen plan` shows what a build would do: what is stale and why, the steps, what they cost."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from imagegen.builder.capacity import jobs_for
from imagegen.builder.up_to_date import find_stale
from imagegen.engine import client
from imagegen.errors import RenderError
from imagegen.journal.reading import from_journal
from imagegen.planner.cost import Prices, measured_seconds, prices_of
from imagegen.planner.plan import (
    BLOCKED,
    STALE,
    UP_TO_DATE,
    PlannedCell,
    as_data,
    dot,
    plan_of,
)
from imagegen.planner.plan_tables import show
from imagegen.sources.reach import out_of_reach
from imagegen.sources.supply import lacking, open_store
from imagegen.workflow.project import Project, select

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from imagegen.builder.up_to_date import Staleness
    from imagegen.console.console import Console
    from imagegen.engine.client import Engine
    from imagegen.errors import Problem
    from imagegen.model.image import ImageSpec
    from imagegen.model.recipe import Recipe
    from imagegen.planner.plan import Plan
    from imagegen.sources.supply import Store
    from imagegen.workflow.project import Family


@dataclass(frozen=True)
class PlanOptions:
    """The options of the command line, with the same names."""

    matrix: str
    cells: tuple[str, ...] = ()
    jobs: int | None = None
    why: bool = False
    as_dot: bool = False
    measured: bool = False
    overlay: Path | None = None


def plan(options: PlanOptions, console: Console) -> None:
    """Plan a build of cells of a matrix, and show the plan."""
    measured = from_journal(measured_seconds, console.note) if options.measured else None
    project = Project(options.overlay, measured)
    family = project.family(options.matrix)
    specs = select(family.specs, options.cells)
    engine = client.connect()
    store = open_store(project.payload)
    prices = from_journal(partial(prices_of, project.catalog), console.note)
    made = plan_cells(engine, project, family, specs, prices, store)
    if options.as_dot:
        console.data({"dot": dot(made)})
        console.line(dot(made))
        return
    console.data(as_data(made))
    jobs = options.jobs or jobs_for(client.engine_machine(engine))
    show(made, jobs, console, every_change=options.why)


def plan_cells(
    engine: Engine,
    project: Project,
    family: Family,
    specs: Sequence[ImageSpec],
    prices: Prices,
    store: Store,
) -> Plan:
    """Plan a build of these cells of a family."""
    recipes, blocked = _recipes(project, family, specs, store)
    judged = find_stale(engine, recipes, force=False)
    blocked |= out_of_reach(engine, [one.recipe for one in judged if one.why], store)
    cells = _states(specs, judged, blocked)
    return plan_of(cells, family.orders, prices, project.catalog)


def _recipes(
    project: Project, family: Family, specs: Sequence[ImageSpec], store: Store
) -> tuple[list[Recipe], dict[str, Problem]]:
    """Render the cells; also return, by id, the problems of cells that cannot be built."""
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


def _states(
    specs: Sequence[ImageSpec], judged: Sequence[Staleness], blocked: Mapping[str, Problem]
) -> list[PlannedCell]:
    """Find the state of each cell: up to date, stale, or blocked by a problem."""
    found = {one.recipe.spec.cell.id: one for one in judged}
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
