"""`imagegen build`: the main job."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from imagegen.cli import options
from imagegen.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from imagegen.console.console import Console
    from imagegen.journal.journal import Journal
    from imagegen.model.build import BuildRecord
    from imagegen.model.cell import BaseMode
    from imagegen.model.recipe import Recipe
    from imagegen.sources.lock_file import Lock
    from imagegen.workflow.project import Family
    from imagegen.workflow.stages import BuildWishes


@dataclass(frozen=True)
class _Asked:
    """The options of the command line, but for those that say what to do instead of a build."""

    matrix: str
    cells: tuple[str, ...]
    jobs: int | None
    force: bool
    no_validate: bool
    locked: bool
    measured: bool
    no_disk_check: bool
    allow_unverified: bool
    ca_bundle: Path | None
    base: BaseMode | None


@click.command("build")
@click.option("--matrix", "-m", "matrix", default="", help="name or path of a matrix")
@options.cells
@options.jobs
@click.option("--resume", is_flag=True, help="go on with the last build, where it ended early")
@click.option("--until", metavar="COMPONENT", help="one cell, up to this component, without a tag")
@click.option("--shell", is_flag=True, help="with --until: a shell there, or before a failing step")
@click.option(
    "--force", is_flag=True, help="build also what is up to date, without the cache, on any disk"
)
@options.no_disk_check
@click.option(
    "--no-validate", is_flag=True, help="tag without `validate --static`; the label says so"
)
@click.option(
    "--locked", is_flag=True, help="exactly what the matrix's .lock.yaml says; refuse what drifted"
)
@options.measured
@options.allow_unverified
@options.ca_bundle
@options.base
@options.progress
@options.common
@click.pass_context
def command(
    ctx: click.Context,
    /,
    resume: bool,
    until: str | None,
    shell: bool,
    console: Console,
    overlay: Path | None,
    **asked: Any,
) -> None:
    """Build the stale cells of a matrix, validate each new image, then move its tag."""
    if resume:
        _resume(ctx, console)
        return
    if not asked["matrix"]:
        raise ConfigError.of("missing option `--matrix`", hint="imagegen list")
    if shell and not until:
        raise ConfigError.of("`--shell` needs `--until COMPONENT`")
    if until:
        _until(_Asked(**asked), until, shell, console, overlay)
    else:
        _build(_Asked(**asked), ctx.meta.get(_ARGV, ()), console, overlay)


_ARGV = "imagegen.build.argv"
"""In the context of a resumed build: the command line of the one that it goes on with."""


def _resume(ctx: click.Context, console: Console) -> None:
    """The command of the last build again, for the cells that it still owes."""
    from imagegen.builder.resume import last_build
    from imagegen.config.state import state_folder
    from imagegen.journal.journal import open_journal

    last = last_build(open_journal(), state_folder(), str(Path.cwd()))
    again = command.make_context("build", list(last.argv[1:]), parent=ctx)
    changes = {"resume": False, "fmt": ctx.params["fmt"]}
    if last.cells is not None:
        changes["cells"] = last.cells
    if ctx.params["jobs"]:
        changes["jobs"] = ctx.params["jobs"]
    left = f", {len(last.cells)} cells are left" if last.cells is not None else ""
    console.note(f"going on with run {last.run_id}{left}: imagegen {shlex.join(last.argv)}")
    again.meta[_ARGV] = last.argv
    with again:
        again.invoke(command, **{**again.params, **changes})


def _build(asked: _Asked, argv: Sequence[str], console: Console, overlay: Path | None) -> None:
    from imagegen.journal.journal import open_journal

    book = open_journal()
    standing = _standing(asked, overlay)
    if standing:
        _nothing_to_do(standing, argv, console, book)
    else:
        _build_stale(asked, argv, console, overlay, book)


def _standing(asked: _Asked, overlay: Path | None) -> tuple[BuildRecord, ...]:
    """A record for each cell where all images stand, as far as that is known without rendering."""
    from imagegen.builder.up_to_date import all_standing
    from imagegen.workflow.project import House

    if asked.cells or asked.force or asked.locked or asked.measured or asked.ca_bundle:
        return ()
    memory = House(overlay).last_wanted(asked.matrix)
    return all_standing((memory and memory.recall()) or ())


def _nothing_to_do(
    records: Sequence[BuildRecord], argv: Sequence[str], console: Console, book: Journal
) -> None:
    from imagegen.console.build_table import report
    from imagegen.journal.run import recorded

    started = time.monotonic()
    cells = [record.cell_id for record in records]
    with recorded(book, "build", argv) as run_id:
        book.plan_cells(run_id, cells)
        with console.builds(cells) as board:
            for record in records:
                board.up_to_date(record)
        book.add_builds(run_id, records)
        report(records, time.monotonic() - started, console)


def _build_stale(
    asked: _Asked, argv: Sequence[str], console: Console, overlay: Path | None, book: Journal
) -> None:
    from imagegen.builder.failures import build_failures
    from imagegen.console.build_table import report
    from imagegen.engine.client import connect
    from imagegen.journal.run import recorded
    from imagegen.workflow.stages import build_recipes

    house, family, recipes = _selected(asked, book, overlay)
    wishes = _wishes(asked, house, family, recipes, book, overlay)
    engine = connect()
    started = time.monotonic()

    def broken(records: Sequence[BuildRecord]) -> None:
        report(records, time.monotonic() - started, console)
        failures = build_failures(one for one in records if one.outcome != "cancelled")
        if failures is not None:
            console.error(failures)

    with recorded(book, "build", argv) as run_id:
        wishes = replace(wishes, on_broken=broken)
        records = build_recipes(engine, recipes, house.payload, wishes, console, book, run_id)
        report(records, time.monotonic() - started, console)
        failures = build_failures(records)
        if failures is not None:
            raise failures


def _selected(asked: _Asked, book: Journal, overlay: Path | None) -> Any:
    from imagegen.builder.up_to_date import wanted
    from imagegen.workflow.plan import measured_seconds
    from imagegen.workflow.project import House

    house = House(overlay, measured_seconds(book) if asked.measured else None)
    memory = None if asked.cells else house.last_wanted(asked.matrix)
    family = house.family(asked.matrix)
    recipes = house.recipes(family, asked.cells)
    if memory:
        memory.keep(tuple(map(wanted, recipes)))
    return house, family, recipes


def _wishes(
    asked: _Asked,
    house: Any,
    family: Family,
    recipes: Sequence[Recipe],
    book: Journal,
    overlay: Path | None,
) -> BuildWishes:
    from imagegen.workflow.plan import prices_of
    from imagegen.workflow.stages import BuildWishes

    again = ["imagegen", "build", "--matrix", asked.matrix]
    again += ["--overlay", str(overlay)] if overlay else []
    return BuildWishes(
        asked.jobs,
        asked.force,
        not asked.no_validate,
        asked.ca_bundle,
        asked.base,
        asked.allow_unverified,
        _lock(family, recipes) if asked.locked else None,
        prices_of(house, book),
        not asked.no_disk_check,
        shlex.join(again),
    )


def _until(
    asked: _Asked, component: str, shell: bool, console: Console, overlay: Path | None
) -> None:
    """One cell up to a component; an error, or a shell before the step that failed."""
    from imagegen.builder.failures import build_failures
    from imagegen.builder.until import build_until
    from imagegen.engine.client import connect
    from imagegen.engine.containers import terminal
    from imagegen.journal.journal import open_journal
    from imagegen.journal.run import recorded
    from imagegen.workflow.stages import build_options

    book = open_journal()
    house, family, recipes = _selected(asked, book, overlay)
    if len(recipes) != 1:
        text = f"`--until` builds one cell, and {len(recipes)} are selected"
        raise ConfigError.of(text, evidence=[recipe.spec.cell.name for recipe in recipes])
    wishes = _wishes(asked, house, family, recipes, book, overlay)
    engine = connect()
    with recorded(book, "until") as run_id:
        made = build_options(engine, house.payload, wishes, console, book, run_id)
        with console.builds([recipes[0].spec.cell.id]) as board:
            found = build_until(engine, recipes[0], component, made, board)
        failures = build_failures([found.failed] if found.failed else [])
        console.data({"image": found.image_id, "failed_step": found.step})
        where = f"the state before `{found.step}`" if found.step else f"the state after {component}"
        if found.image_id:
            console.line(f"{where}: docker run -it --rm {found.image_id[7:19]} bash")
        if shell and found.image_id and terminal.has_terminal():
            if failures is not None:
                console.error(failures)
            terminal.shell(engine, found.image_id, made.env.files)
        elif failures is not None:
            raise failures


def _lock(family: Family, recipes: Sequence[Recipe]) -> Lock:
    """The lock of a family, if all that the cells ask for is in it."""
    from imagegen.sources.lock_file import (
        drift_of_cells,
        drifted,
        lock_path,
        read_lock,
    )

    lock = read_lock(lock_path(family.matrix.file))
    found = drift_of_cells(lock, recipes)
    if found:
        raise drifted(lock, found)
    return lock
