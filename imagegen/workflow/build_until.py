"""Build one cell up to a component, with a shell there, for `imagegen build --until`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from imagegen.builder.failures import build_failures
from imagegen.builder.until import build_until as build_stages
from imagegen.builder.up_to_date import Staleness
from imagegen.engine import client
from imagegen.engine.containers import terminal
from imagegen.errors import ConfigError
from imagegen.events.sinks import fan_out
from imagegen.journal.journal import open_journal
from imagegen.journal.log_files import LogFiles
from imagegen.journal.run import journal_run
from imagegen.planner.cost import measured_seconds
from imagegen.sources.lock_file import lock_for
from imagegen.workflow.build import ActiveRun, plan_build, select_recipes
from imagegen.workflow.project import Project

if TYPE_CHECKING:
    from imagegen.builder.until import Reached
    from imagegen.console.console import Console
    from imagegen.model.build import BuildOptions


def build_until(options: BuildOptions, component: str, console: Console, *, shell: bool) -> None:
    """Build one cell up to a component; `shell` opens a shell there, or before the failed step.

    Raises ConfigError where the options select another number of cells than one, BuildError for a
    step that failed.
    """
    journal = open_journal()
    project = Project(options.overlay, measured_seconds(journal) if options.measured else None)
    family, recipes = select_recipes(project, options)
    if len(recipes) != 1:
        text = f"`--until` builds one cell, and {len(recipes)} are selected"
        names = [recipe.spec.cell.name for recipe in recipes]
        hint = f"add the name of one, such as `{names[0]}`"
        raise ConfigError.of(text, evidence=names, hint=hint)
    lock = lock_for(family.matrix.file, recipes) if options.locked else None
    engine = client.connect()
    with journal_run(journal, "until") as run_id:
        run = ActiveRun(run_id, journal, console)
        plan = plan_build(project, client.engine_machine(engine), options, run, lock)
        plan = replace(plan, cells=(Staleness(recipes[0], "--until", None),))
        with console.builds([recipes[0].spec.cell.id]) as show, LogFiles(plan.logs) as logs:
            reached = build_stages(plan, component, engine, options, fan_out(logs, show))
        _say_where(reached, component, console)
        failures = build_failures([reached.failed] if reached.failed else [])
        if shell and reached.image_id and terminal.has_terminal():
            if failures is not None:
                console.error(failures)
            terminal.shell(engine, reached.image_id, plan.network.files)
        elif failures is not None:
            raise failures


def _say_where(reached: Reached, component: str, console: Console) -> None:
    console.data({"image": reached.image_id, "failed_step": reached.step})
    where = f"before `{reached.step}`" if reached.step else f"after {component}"
    if reached.image_id:
        console.line(f"the state {where}: docker run -it --rm {reached.image_id[7:19]} bash")
