"""`imagegen plan`: what a build would do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from imagegen.cli import options

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from imagegen.console.console import Console
    from imagegen.planner.cost import Step, Total
    from imagegen.workflow.plan import Planned


@click.command("plan")
@options.matrix
@options.cells
@options.jobs
@click.option("--why", is_flag=True, help="every input that changed, not the first one alone")
@click.option("--dot", "as_dot", is_flag=True, help="the tree of steps as a graph for Graphviz")
@options.measured
@options.common
def command(
    matrix: str,
    cells: tuple[str, ...],
    jobs: int | None,
    why: bool,
    as_dot: bool,
    measured: bool,
    console: Console,
    overlay: Path | None,
) -> None:
    """What `build` would do, without doing it: steps, seconds, bytes, what is stale and why."""
    from imagegen.builder.jobs import jobs_for
    from imagegen.engine.client import connect, machine
    from imagegen.journal.journal import open_journal
    from imagegen.sources.supply import open_store
    from imagegen.workflow.plan import (
        as_data,
        dot,
        measured_seconds,
        plan_cells,
        prices_of,
    )
    from imagegen.workflow.project import Project, select

    book = open_journal()
    project = Project(overlay, measured_seconds(book) if measured else None)
    family = project.family(matrix)
    specs = select(family.specs, cells)
    engine = connect()
    store = open_store(project.payload)
    planned = plan_cells(engine, project, family, specs, prices_of(project, book), store)
    if as_dot:
        console.data({"dot": dot(planned)})
        console.line(dot(planned))
        return
    console.data(as_data(planned))
    _show_steps(planned, console)
    _show_totals(planned, jobs or jobs_for(machine(engine)), console)
    _show_cells(planned, why, console)


def _show_steps(planned: Planned, console: Console) -> None:
    from imagegen.text import human_bytes, human_seconds

    for os_id, steps in planned.steps.items():
        waiting = {step.chain for step in _walk(planned.to_make[os_id])}
        rows = [
            (
                "  " * (len(step.chain) - 1) + f"{step.component} {step.release}",
                human_seconds(step.cost.seconds),
                human_bytes(step.cost.size_bytes) if step.cost.size_bytes else "?",
                str(len(step.cells)),
                "measured" if step.cost.measured else "predicted",
                "to make" if step.chain in waiting else "there",
            )
            for step in _walk(steps)
        ]
        title = f"layers on {os_id}: {' > '.join(planned.orders[os_id])}"
        console.table(("step", "time", "size", "cells", "cost is", "state"), rows, title)
        console.line()


def _walk(steps: Sequence[Step]) -> Iterator[Step]:
    from imagegen.planner.cost import walk

    return walk(steps)


def _show_totals(planned: Planned, jobs: int, console: Console) -> None:
    from imagegen.builder.disk import uncounted
    from imagegen.planner.cost import unsized
    from imagegen.text import human_bytes, human_seconds

    def told(one: Total) -> tuple[str, str, str, str]:
        size = human_bytes(one.size_bytes)
        return str(one.steps), human_seconds(one.seconds), human_seconds(one.lasting(jobs)), size

    console.table(
        ("", "steps", "work", f"with {jobs} at a time", "disk"),
        [
            ("each cell by itself", *told(planned.each_by_itself)),
            ("shared, as declared", *told(planned.as_declared)),
            ("shared, as planned", *told(planned.whole)),
            ("still to make", *told(planned.left)),
        ],
    )
    steps = [step for above in planned.to_make.values() for step in above]
    if uncounted(unsized(steps)):
        console.line(uncounted(unsized(steps)))
    console.line()


def _show_cells(planned: Planned, why: bool, console: Console) -> None:
    rows = [(cell.spec.cell.name, cell.state, cell.why) for cell in planned.cells]
    console.table(("cell", "state", "why"), rows)
    for cell in planned.cells if why else ():
        if cell.changes:
            console.line(f"{cell.spec.cell.name}:")
        for change in cell.changes:
            console.line(f"  {change}")
