"""`imagegen doctor` says what this machine has and lacks; `--fix` sets it up."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING

from imagegen.catalog.documents import read_reasons
from imagegen.engine.client import connect, facts
from imagegen.errors import EngineError, ImagegenError, Problem
from imagegen.launcher.docker import flags_of
from imagegen.maintenance.contract import machine, missing
from imagegen.maintenance.doctor import apply, catalog_age, findings, fix_plan, look
from imagegen.workflow.contract import contract_of
from imagegen.workflow.project import Project

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from imagegen.console.console import Console
    from imagegen.maintenance.doctor import Facts, Finding
    from imagegen.model.launch import Reason

BYTES_FOR_A_CELL = 2_000_000_000
"""The disk that a CPU image of this project takes with its build stage, measured."""

ANY_IMAGE = "debian:bookworm-slim"
"""The image whose registry is tried where no matrix says which bases it needs."""


def doctor(matrix: str | None, overlay: Path | None, console: Console, *, fix: bool) -> None:
    """Check this machine, set it up if `fix` is given, and show what was found.

    Raises EngineError with a problem for each check that fails.
    """
    needed, image = _needs(matrix, overlay)
    facts = look(needed, image)
    age = catalog_age(Project(overlay).catalog, datetime.now(timezone.utc).date())
    found = [*findings(facts), age]
    if fix and _set_up(facts, found, console):
        found = [*findings(look(needed, image)), age]
    console.data([vars(finding) for finding in found])
    _show(found, console)
    lost = [finding for finding in found if finding.level == "fail"]
    if lost:
        raise EngineError(*(Problem(f"{f.name}: {f.detail}", hint=f.hint) for f in lost))


def doctor_of_image(name: str, overlay: Path | None, console: Console, gpus: int) -> None:
    """Compare what an image needs with this host; print host commands, and the flags of a launch.

    Raises EngineError with a problem for each thing that the host lacks.
    """
    image, contract = contract_of(name, overlay)
    payload = Project(overlay).payload
    commands = host_commands(read_reasons(payload))
    found = missing(contract, machine(_runtimes()), gpus, commands)
    flags = [flag.text for flag in flags_of(contract, read_reasons(payload))]
    console.data({"image": image, "findings": [vars(one) for one in found], "flags": flags})
    _show(found, console)
    for text in flags:
        console.line(f"flag  {text}")
    lost = [finding for finding in found if finding.level == "fail"]
    if lost:
        raise EngineError(*(Problem(f"{f.name}: {f.detail}", hint=f.hint) for f in lost))


def _runtimes() -> tuple[str, ...] | None:
    """Return the runtimes of the engine; None where none answers."""
    try:
        return tuple(facts(connect()).runtimes)
    except ImagegenError:
        return None


def host_commands(reasons: Mapping[str, Reason]) -> dict[str, str]:
    """Map each thing of a host to the command that makes it: the keys `host.*` of the data."""
    return {
        key.removeprefix("host."): reason.why
        for key, reason in reasons.items()
        if key.startswith("host.")
    }


def _needs(matrix: str | None, overlay: Path | None) -> tuple[int, str]:
    """Return the bytes that a matrix takes on the engine, and one of its base images."""
    if matrix is None:
        return BYTES_FOR_A_CELL, ANY_IMAGE
    specs = Project(overlay).family(matrix).specs
    return BYTES_FOR_A_CELL * len(specs), specs[0].os.image


def _set_up(facts: Facts, found: Sequence[Finding], console: Console) -> bool:
    """Set up what is missing; say whether anything was."""
    plan = fix_plan(found, facts.machine.host)
    apply(plan, facts.machine.host, lambda line: console.note(f"+ {line}"), console.note)
    return bool(plan)


def _show(found: Sequence[Finding], console: Console) -> None:
    for finding in found:
        console.line(f"{finding.level:<5} {finding.name:<16} {finding.detail}")
        if finding.hint and finding.level != "ok":
            console.line(f"      hint: {finding.hint}")
