"""Define `imagegen plan`, which shows what a build would do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from imagegen.cli import options

if TYPE_CHECKING:
    from imagegen.console.console import Console


@click.command("plan")
@options.matrix
@options.cells
@options.jobs
@click.option("--why", is_flag=True, help="every input that changed, not the first one alone")
@click.option("--dot", "as_dot", is_flag=True, help="the tree of steps as a graph for Graphviz")
@options.measured
@options.common
def command(console: Console, **asked: Any) -> None:
    """What `build` would do, without doing it: steps, seconds, bytes, what is stale and why."""
    from imagegen.workflow.plan import PlanOptions, plan

    plan(PlanOptions(**asked), console)
