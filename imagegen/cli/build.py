"""Define `imagegen build`, which builds, validates and tags the stale images of a matrix."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from imagegen.cli import options
from imagegen.errors import ConfigError
from imagegen.model.build import BuildOptions

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.console.console import Console
    from imagegen.model.cell import BaseMode


@click.command("build")
@click.option("--matrix", "-m", "matrix", help="name or path of a matrix")
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
    matrix: str | None,
    cells: tuple[str, ...],
    jobs: int | None,
    resume: bool,
    until: str | None,
    shell: bool,
    force: bool,
    no_disk_check: bool,
    no_validate: bool,
    locked: bool,
    measured: bool,
    allow_unverified: bool,
    ca_bundle: Path | None,
    base: BaseMode | None,
    console: Console,
    overlay: Path | None,
) -> None:
    """Build the stale cells of a matrix, validate each new image, then move its tag."""
    if resume:
        _resume(ctx, console)
        return
    if matrix is None:
        raise ConfigError.of("missing option `--matrix`", hint="imagegen list")
    if shell and not until:
        raise ConfigError.of("`--shell` needs `--until COMPONENT`")
    chosen = BuildOptions(
        matrix=matrix,
        cells=cells,
        overlay=overlay,
        jobs=jobs,
        force=force,
        gate=not no_validate,
        locked=locked,
        measured=measured,
        check_disk=not no_disk_check,
        allow_unverified=allow_unverified,
        ca_bundle=ca_bundle,
        base=base,
        again=_again(matrix, overlay),
    )
    if until:
        from imagegen.workflow.build_until import build_until

        build_until(chosen, until, console, shell=shell)
    else:
        from imagegen.workflow.build import build

        build(chosen, console, ctx.meta.get(_ARGV, ()))


def _again(matrix: str, overlay: Path | None) -> str:
    """Write the command that builds this matrix."""
    return shlex.join(
        ["imagegen", "build", "--matrix", matrix, *(["--overlay", str(overlay)] if overlay else [])]
    )


_ARGV = "imagegen.build.argv"
"""The key in click's context of the command line of the build that is resumed."""


def _resume(ctx: click.Context, console: Console) -> None:
    """Run the command of the last build again, for the cells that it did not finish."""
    from imagegen.workflow.build import unfinished_build

    last = unfinished_build()
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
