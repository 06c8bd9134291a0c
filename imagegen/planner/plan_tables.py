"""Print the plan of a build: the steps, what they cost, and the state of each cell."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from imagegen.planner.cost import uncounted, unsized, walk
from imagegen.text import human_bytes, human_seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from imagegen.console.console import Console
    from imagegen.planner.cost import Total
    from imagegen.planner.plan import Plan

Count = TypeVar("Count", int, float)


def show(plan: Plan, jobs: int, console: Console, *, every_change: bool) -> None:
    """Print a plan for this many builds at a time.

    With `every_change`, print everything that makes a cell stale.
    """
    _show_steps(plan, console)
    _show_totals(plan, jobs, console)
    _show_cells(plan, console, every_change=every_change)


def _show_steps(plan: Plan, console: Console) -> None:
    for os_id, steps in plan.steps.items():
        waiting = {step.chain for step in walk(plan.to_make[os_id])}
        rows = [
            (
                "  " * (len(step.chain) - 1) + f"{step.component} {step.release}",
                human_seconds(step.cost.seconds),
                human_bytes(step.cost.size_bytes) if step.cost.size_bytes else "?",
                str(len(step.cells)),
                "measured" if step.cost.measured else "predicted",
                "to make" if step.chain in waiting else "there",
            )
            for step in walk(steps)
        ]
        title = f"layers on {os_id}: {' > '.join(plan.orders[os_id])}"
        console.table(("step", "time", "size", "cells", "cost is", "state"), rows, title)
        console.line()


def _show_totals(plan: Plan, jobs: int, console: Console) -> None:
    console.table(
        ("", "steps", "work", f"with {jobs} at a time", "disk"),
        [
            ("each cell by itself", *_total_row(plan.each_by_itself, jobs)),
            ("shared, as declared", *_total_row(plan.as_declared, jobs)),
            ("shared, as planned", *_total_row(plan.whole, jobs)),
            ("still to make", *_total_row(plan.left, jobs)),
            (f"edit of {plan.most_edited}, as declared", *_total_row(plan.edit_as_declared, jobs)),
            (f"edit of {plan.most_edited}, as planned", *_total_row(plan.edit_as_planned, jobs)),
        ],
    )
    for text in why_it_costs_more(plan, jobs):
        console.line(text)
    unknown = uncounted(unsized([step for above in plan.to_make.values() for step in above]))
    if unknown:
        console.line(unknown)
    console.line()


def why_it_costs_more(plan: Plan, jobs: int) -> tuple[str, ...]:
    """Explain why the planned order costs more from nothing, and what the next edit gains by it.

    The result is empty where it does not cost more than the declared order.
    """
    more = plan.whole.seconds - plan.as_declared.seconds
    if more <= 0:
        return ()
    planned, declared = plan.edit_as_planned, plan.edit_as_declared
    takes = _against(declared.lasting(jobs) - planned.lasting(jobs), human_seconds)
    writes = _against(declared.size_bytes - planned.size_bytes, human_bytes)
    nothing = f"From nothing the planned order takes {human_seconds(more)} more work than the"
    edit = f"After an edit of {plan.most_edited}, which changes most often, it takes {takes}"
    return (
        f"{nothing} declared one: it also weighs how often a component changes.",
        f"{edit} with {jobs} at a time, and writes {writes}.",
    )


def _against(saved: Count, written: Callable[[Count], str]) -> str:
    """Write what an order saves or costs against the other one: `8.0s less`."""
    if not saved:
        return "as much"
    return f"{written(abs(saved))} {'less' if saved > 0 else 'more'}"


def _total_row(one: Total, jobs: int) -> tuple[str, str, str, str]:
    size = human_bytes(one.size_bytes)
    return str(one.steps), human_seconds(one.seconds), human_seconds(one.lasting(jobs)), size


def _show_cells(plan: Plan, console: Console, *, every_change: bool) -> None:
    rows = [(cell.spec.cell.name, cell.state, cell.why) for cell in plan.cells]
    console.table(("cell", "state", "why"), rows)
    for cell in plan.cells if every_change else ():
        if cell.changes:
            console.line(f"{cell.spec.cell.name}:")
        for change in cell.changes:
            console.line(f"  {change}")
