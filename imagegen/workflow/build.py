"""`imagegen build` builds the stale cells of a matrix, validates each image, and moves its tag."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from imagegen.builder.capacity import check_room, jobs_for
from imagegen.builder.failures import build_failures
from imagegen.builder.plan import BuildPlan
from imagegen.builder.scheduler import IN_FLIGHT, build_family
from imagegen.builder.shared_export import PACKED_A_SECOND, SharedExport
from imagegen.builder.up_to_date import (
    expected_image,
    find_stale,
    in_turns,
    records_if_unchanged,
)
from imagegen.config.network import host_network
from imagegen.config.state import state_folder
from imagegen.console.build_table import report
from imagegen.engine import client
from imagegen.events.events import CellEnded, CellsPlanned, Note
from imagegen.events.sinks import fan_out
from imagegen.journal.journal import open_journal
from imagegen.journal.locks import engine_locks
from imagegen.journal.log_files import LogFiles
from imagegen.journal.reading import reading_journal
from imagegen.journal.resume import last_build
from imagegen.journal.run import journal_run
from imagegen.journal.writer import JournalWriter
from imagegen.planner.cost import (
    left_to_make,
    measured_seconds,
    plus,
    prices_of,
    total,
    trees_of,
    trunk,
    uncounted,
    unsized,
)
from imagegen.planner.time_left import BuildPace, predict
from imagegen.sources.lock_file import lock_for
from imagegen.sources.locked_build import LockedBuild
from imagegen.sources.supply import open_store
from imagegen.workflow.project import Project

if TYPE_CHECKING:
    from collections.abc import Sequence

    from imagegen.builder.plan import BuildResult
    from imagegen.builder.up_to_date import Staleness
    from imagegen.console.console import Console
    from imagegen.engine.client import Engine, EngineMachine
    from imagegen.events.events import Sink
    from imagegen.journal.journal import Journal
    from imagegen.journal.resume import Unfinished
    from imagegen.model.build import BuildOptions, BuildRecord
    from imagegen.model.recipe import Recipe
    from imagegen.sources.lock_file import Lock
    from imagegen.workflow.project import Family


@dataclass(frozen=True)
class ActiveRun:
    """A run of a command that builds, with its journal and its console."""

    id: int
    journal: Journal
    console: Console


def build(options: BuildOptions, console: Console, argv: Sequence[str] = ()) -> None:
    """Bring the images of a matrix up to date.

    `argv` is the command, if not that of this process. Raises ConfigError, NothingSelectedError,
    ResolutionError or RenderError before anything is built; EngineError; BuildError for images that
    were not built; Interrupted.
    """
    journal = open_journal()
    unchanged = unchanged_images(options)
    if unchanged:
        _report_unchanged(unchanged, console, journal, argv)
        return
    project = Project(options.overlay, measured_seconds(journal) if options.measured else None)
    family, recipes = select_recipes(project, options)
    lock = lock_for(family.matrix.file, recipes) if options.locked else None
    engine = client.connect()
    started = time.monotonic()
    with journal_run(journal, "build", argv) as run_id:
        run = ActiveRun(run_id, journal, console)
        result = build_recipes(recipes, engine, project, options, run, lock)
        report(result.records, time.monotonic() - started, console)
        raise_failures(result, console)


def unchanged_images(options: BuildOptions) -> tuple[BuildRecord, ...]:
    """Make a record for each cell, if the engine still has all images that the last run wanted.

    Nothing is read or rendered for it. The result is empty where something may have changed.
    """
    if options.cells or options.force or options.locked or options.measured or options.ca_bundle:
        return ()
    memory = Project(options.overlay).last_expected(options.matrix)
    return records_if_unchanged((memory and memory.recall()) or ())


def _report_unchanged(
    records: Sequence[BuildRecord], console: Console, journal: Journal, argv: Sequence[str]
) -> None:
    started = time.monotonic()
    cells = [record.cell_id for record in records]
    with journal_run(journal, "build", argv) as run_id:
        journal.plan_cells(run_id, cells)
        with console.builds(cells) as show:
            for record in records:
                show(CellEnded(record))
        journal.add_builds(run_id, records)
        report(records, time.monotonic() - started, console)


def unfinished_build() -> Unfinished:
    """Find the cells that the last build in this folder did not finish.

    Raises as `last_build` does.
    """
    return last_build(reading_journal(), state_folder(), str(Path.cwd()))


def select_recipes(project: Project, options: BuildOptions) -> tuple[Family, list[Recipe]]:
    """Read, resolve, order and render the selected cells, and record what images they should be."""
    memory = None if options.cells else project.last_expected(options.matrix)
    family = project.family(options.matrix)
    recipes = project.recipes(family, options.cells)
    if memory:
        memory.keep(tuple(map(expected_image, recipes)))
    return family, recipes


def build_recipes(
    recipes: Sequence[Recipe],
    engine: Engine,
    project: Project,
    options: BuildOptions,
    run: ActiveRun,
    lock: Lock | None = None,
) -> BuildResult:
    """Build the stale ones of these recipes; failures are in the records."""
    machine = client.engine_machine(engine)
    plan = plan_build(project, machine, options, run, lock)
    cells = tuple(recipe.spec.cell.id for recipe in recipes)
    with run.console.builds(cells) as show, LogFiles(plan.logs) as log_files:
        sink = fan_out(JournalWriter(run.journal, run.id), log_files, show)
        sink(CellsPlanned(cells))
        found = find_stale(engine, recipes, force=options.force, lock=plan.lock)
        plan = replace(plan, cells=tuple(found), last_good=_last_good(found, run.journal))
        plan = _forecast(plan, project, run.journal, machine, options, sink)
        return build_family(plan, engine, options, sink)


def plan_build(
    project: Project,
    machine: EngineMachine,
    options: BuildOptions,
    run: ActiveRun,
    lock: Lock | None,
) -> BuildPlan:
    """Collect what the builds of a run need, without their cells.

    Raises ConfigError.
    """
    network = host_network(options.ca_bundle)
    for note in network.notes:
        run.console.note(f"build steps use {note}")
    return BuildPlan(
        cells=(),
        jobs=options.jobs or jobs_for(machine),
        store=open_store(
            project.payload, options.ca_bundle, allow_unverified=options.allow_unverified
        ),
        network=network,
        logs=state_folder() / "logs" / f"run-{run.id}",
        locks=engine_locks(machine.id, state_folder()),
        lock=LockedBuild(lock) if lock else None,
    )


def _last_good(found: Sequence[Staleness], journal: Journal) -> dict[str, BuildRecord]:
    cells = [one.recipe.spec.cell.id for one in found if one.why]
    last = {cell: journal.last_good(cell) for cell in cells}
    return {cell: record for cell, record in last.items() if record is not None}


def _forecast(
    plan: BuildPlan,
    project: Project,
    journal: Journal,
    machine: EngineMachine,
    options: BuildOptions,
    sink: Sink,
) -> BuildPlan:
    """Predict the time and the disk that a build takes, and find the layers that its cells share.

    Raises BuildError where the images will not fit on the engine's disk.
    """
    found = [one for one in plan.cells if one.why]
    if not found:
        return plan
    stale, prices = [one.recipe for one in found], prices_of(project.catalog, journal)
    to_make = left_to_make(stale, [one.recipe for one in plan.cells if not one.why], prices)
    # No layer is exported by itself where the engine makes all of them again.
    shared = () if options.force else trunk(to_make)
    turns = [one.recipe.spec.cell.id for one in in_turns(found)]
    pace = _pace(replace(plan, shared=shared), options, journal)
    sink(predict(turns, to_make, trees_of(stale, prices), pace))
    if options.check_disk and not options.force:
        whole = plus([total(steps) for steps in to_make.values()])
        steps = [step for above in to_make.values() for step in above]
        for text in (check_room(whole.size_bytes, machine), uncounted(unsized(steps))):
            if text:
                sink(Note(text))
    sink(Note(f"{len(stale)} of {len(plan.cells)} images to build, {plan.jobs} at a time"))
    return replace(plan, shared=shared)


def _pace(plan: BuildPlan, options: BuildOptions, journal: Journal) -> BuildPace:
    """Say how fast this engine is, as far as the journal has measured it."""
    return BuildPace(
        jobs=plan.jobs,
        in_flight=IN_FLIGHT * plan.jobs,
        exported_a_second=journal.export_speed() or PACKED_A_SECOND,
        gate_seconds=journal.gate_seconds(),
        gated=options.gate,
        packed=SharedExport(plan.shared).layers,
        remade=options.force,
    )


def raise_failures(result: BuildResult, console: Console) -> None:
    """Raise the error that ended a build early, after printing its failures; or the failures."""
    if result.broken is not None:
        failures = build_failures(one for one in result.records if one.outcome != "cancelled")
        if failures is not None:
            console.error(failures)
        raise result.broken
    failures = build_failures(result.records)
    if failures is not None:
        raise failures
