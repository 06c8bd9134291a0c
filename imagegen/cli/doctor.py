"""`imagegen doctor`: what this machine has and lacks; `--fix` sets it up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from imagegen.cli import options
from imagegen.errors import EngineError, Problem

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from imagegen.console.console import Console
    from imagegen.maintenance.doctor import Finding

BYTES_FOR_A_CELL = 2_000_000_000
"""What a CPU image of this project takes on disk with its build stage, measured."""

ANY_IMAGE = "debian:bookworm-slim"
"""The image whose registry is tried where no matrix says which bases it wants."""


@click.command("doctor")
@click.option("--matrix", "-m", "matrix", help="judge the disk against what this matrix needs")
@click.option("--fix", is_flag=True, help="install and start what is missing (Debian family, root)")
@options.common
def command(matrix: str | None, fix: bool, console: Console, overlay: Path | None) -> None:
    """One line each: ok, warn or fail, what was found, and what to do about it."""
    from imagegen.maintenance.doctor import (
        apply,
        findings,
        fix_plan,
        look,
    )

    needed, image = _needs(matrix, overlay)
    facts = look(needed, image)
    found = findings(facts)
    if fix:
        plan = fix_plan(found, facts.machine.host)
        apply(plan, facts.machine.host, lambda line: console.note(f"+ {line}"), console.note)
        if plan:
            found = findings(look(needed, image))
    console.data([vars(finding) for finding in found])
    _show(found, console)
    lost = [finding for finding in found if finding.level == "fail"]
    if lost:
        raise EngineError(*(Problem(f"{f.name}: {f.detail}", hint=f.hint) for f in lost))


def _needs(matrix: str | None, overlay: Path | None) -> tuple[int, str]:
    """Bytes that a matrix takes on the engine, and one of the base images that it stands on."""
    from imagegen.workflow.project import Project

    if matrix is None:
        return BYTES_FOR_A_CELL, ANY_IMAGE
    specs = Project(overlay).family(matrix).specs
    return BYTES_FOR_A_CELL * len(specs), specs[0].os.image


def _show(found: Sequence[Finding], console: Console) -> None:
    for finding in found:
        console.line(f"{finding.level:<5} {finding.name:<16} {finding.detail}")
        if finding.hint and finding.level != "ok":
            console.line(f"      hint: {finding.hint}")
