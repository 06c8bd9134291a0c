"""Resume the last build: find its command, and the cells that it did not finish."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from imagegen.errors import ConfigError, NothingSelectedError
from imagegen.journal.database import as_text
from imagegen.journal.locks import free, run_lock_path

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.journal.journal import Journal, Run


@dataclass(frozen=True)
class Unfinished:
    """Describe a build that ended early: its command, and the cells that it did not finish.

    `cells` is None where it ended before it knew them.
    """

    run_id: int
    argv: tuple[str, ...]
    cells: tuple[str, ...] | None


def last_build(journal: Journal, state: Path, cwd: str) -> Unfinished:
    """Find the last build, if it left cells unfinished.

    Raises NothingSelectedError where it did not. Raises ConfigError where it still runs, or was
    started in another folder, because files in its command may be relative to that folder.
    """
    run = journal.last_run("build")
    if run is None:
        text = "there is no build to resume"
        raise NothingSelectedError.of(text, hint="imagegen build --matrix NAME")
    if run.exit_code is None and not free(run_lock_path(state, run.id)):
        raise ConfigError.of(f"run {run.id} still builds", hint="wait for it, or stop it")
    if run.exit_code == 0:
        text = f"the last build, run {run.id}, is complete: nothing is left to build"
        raise NothingSelectedError.of(text, evidence=_said(run))
    if run.cwd != as_text(cwd):
        text = f"run {run.id} was started in another folder, `{run.cwd}`"
        raise ConfigError.of(text, evidence=_said(run), hint=f"cd {run.cwd}")
    done = journal.done_cells(run.id)
    left = tuple(cell for cell in run.cells if cell not in done)
    return Unfinished(run.id, run.argv, left if run.cells else None)


def _said(run: Run) -> list[str]:
    return [f"imagegen {' '.join(run.argv)}"]


def state_of(run: Run, state: Path) -> str:
    """Name the state of a run: its exit code, `running`, or `killed`."""
    if run.exit_code is not None:
        return str(run.exit_code)
    return "killed" if free(run_lock_path(state, run.id)) else "running"
