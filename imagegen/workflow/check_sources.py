"""`imagegen check-sources` asks whether everything that cells are made of is available."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from imagegen.config.network import host_network
from imagegen.config.state import state_folder
from imagegen.engine import client
from imagegen.errors import BuildError, EngineError, Problem, RenderError
from imagegen.sources import preflight
from imagegen.sources.artifacts import read_artifacts
from imagegen.sources.mirrors import read_mirrors
from imagegen.text import human_seconds
from imagegen.workflow.project import Project, select

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from imagegen.console.console import Console
    from imagegen.engine.client import Engine
    from imagegen.model.image import ImageSpec
    from imagegen.sources.preflight import Means, SourceFinding
    from imagegen.workflow.project import Family

HINTS = {
    "base": "set another `base`, or `image` in dockerfiles/os",
    "apt": "correct the version in the catalog: the archive does not have it (any more)",
    "wheel": "correct the version in the catalog, or the index settings of this host's pip",
    "url": "correct the url in the catalog, or add a mirror to mirrors.yaml",
    "artefact": "put the file there, and list it in artifacts.yaml",
}
MOST_CELLS = 2
"""The most cells that a line of the table names; more are counted."""


@dataclass(frozen=True)
class CheckOptions:
    """The options of the command line, with the same names."""

    matrix: str
    cells: tuple[str, ...] = ()
    ca_bundle: Path | None = None
    overlay: Path | None = None


def check_sources(options: CheckOptions, console: Console) -> None:
    """Ask for every source of the cells, and show the answers.

    Raises BuildError with a problem for each source that is missing.
    """
    started = time.monotonic()
    project = Project(options.overlay)
    family = project.family(options.matrix)
    specs = select(family.specs, options.cells)
    means = _means(project, options.ca_bundle)
    dockerfiles = _dockerfiles(project, family, specs)
    uses = preflight.sources_of(specs, project.catalog, _compiled(project), dockerfiles)
    found = preflight.probe_sources(uses, means)
    _show(found, len(specs), time.monotonic() - started, console)
    lost = [finding for finding in found if finding.probe.state == "missing"]
    if lost:
        raise BuildError(*(_problem(finding) for finding in lost))


def _means(project: Project, ca_bundle: Path | None) -> Means:
    return preflight.Means(
        engine=_engine(),
        env=host_network(ca_bundle),
        artifacts=read_artifacts(project.payload),
        mirrors=read_mirrors(project.payload),
        state=state_folder() / "sources",
        ca_bundle=ca_bundle,
    )


def _engine() -> Engine | None:
    """Connect to the engine; without one (None), only this host's clients are asked."""
    try:
        return client.connect()
    except EngineError:
        return None


def _dockerfiles(project: Project, family: Family, specs: Sequence[ImageSpec]) -> dict[str, str]:
    """Map cell ids to Dockerfiles; leave out cells that no template can install yet."""
    found = {}
    for spec in specs:
        with suppress(RenderError):
            (recipe,) = project.recipes(family, [spec.cell.id])
            found[spec.cell.id] = recipe.dockerfile
    return found


def _compiled(project: Project) -> set[str]:
    """List the components that have a build stage of their own."""
    template, find = "dockerfiles/components/{}/build.j2", project.payload.find
    return {name for name in project.catalog.components if find(template.format(name))}


def _show(found: Sequence[SourceFinding], cells: int, seconds: float, console: Console) -> None:
    console.data(
        [
            {
                "kind": finding.source.kind,
                "source": str(finding.source),
                "cells": list(finding.cells),
                "state": finding.probe.state,
                "evidence": finding.probe.evidence,
            }
            for finding in found
        ]
    )
    console.table(
        ("state", "source", "cells", "evidence"),
        [(f.probe.state, str(f.source), _cells(f.cells, cells), f.probe.evidence) for f in found],
    )
    counts = dict.fromkeys(("ok", "missing", "unknown"), 0)
    for finding in found:
        counts[finding.probe.state] += 1
    states = ", ".join(f"{count} {state}" for state, count in counts.items())
    console.line(f"{len(found)} sources of {cells} cells: {states}, in {human_seconds(seconds)}")


def _cells(names: Sequence[str], all_cells: int) -> str:
    if len(names) == all_cells:
        return "all"
    return " ".join(names) if len(names) <= MOST_CELLS else f"{len(names)} cells"


def _problem(finding: SourceFinding) -> Problem:
    return Problem(
        f"{finding.source} cannot be had",
        evidence=(finding.probe.evidence, f"needed by: {' '.join(finding.cells)}"),
        hint=HINTS[finding.source.kind],
    )
