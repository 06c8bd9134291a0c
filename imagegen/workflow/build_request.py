"""Build the image that a request was answered with, for `imagegen request --build`."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

from imagegen.engine.client import connect
from imagegen.journal.journal import open_journal
from imagegen.journal.run import journal_run
from imagegen.workflow.build import ActiveRun, build_recipes, raise_failures
from imagegen.workflow.project import Project

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from imagegen.console.console import Console
    from imagegen.model.build import BuildOptions
    from imagegen.model.image import ImageSpec


def build_request(
    spec: ImageSpec, arguments: Sequence[str], options: BuildOptions, console: Console
) -> None:
    """Build one image.

    `arguments` are those of the request, for the command that repeats it.
    """
    journal = open_journal()
    project = Project(options.overlay)
    recipe = project.recipe_of(spec)
    options = replace(options, again=_again(arguments, spec, options.overlay))
    with journal_run(journal, "request") as run_id:
        run = ActiveRun(run_id, journal, console)
        raise_failures(build_recipes([recipe], connect(), project, options, run), console)
    console.line(f"built {spec.tag}")


def _again(arguments: Sequence[str], spec: ImageSpec, overlay: Path | None) -> str:
    """Write the command that builds the image again.

    These are two commands for a request that is in no matrix: the first one saves it.
    """
    more = ["--overlay", str(overlay)] if overlay else []
    if spec.cell.file:
        return shlex.join(["imagegen", "build", "--matrix", spec.cell.matrix, *more])
    saved = shlex.join(["imagegen", "request", *arguments, "--save", "NAME", *more])
    return f"{saved} && {shlex.join(['imagegen', 'build', '--matrix', 'NAME', *more])}"
