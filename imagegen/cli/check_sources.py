"""`imagegen check-sources`: whether all that the cells are made of can be had, without building."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from imagegen.cli import options
from imagegen.errors import BuildError, EngineError, Problem, RenderError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from imagegen.console.console import Console
    from imagegen.engine.client import Engine
    from imagegen.model.image import ImageSpec
    from imagegen.sources.preflight import Finding, Means
    from imagegen.workflow.project import Family, Project

HINTS = {
    "base": "set another `base`, or `image` in dockerfiles/os",
    "apt": "correct the version in component.yaml: the archive does not have it (any more)",
    "wheel": "correct the version in component.yaml, or the index settings of this host's pip",
    "url": "correct the url in component.yaml, or add a mirror to mirrors.yaml",
    "artefact": "put the file there, and list it in artifacts.yaml",
}
MOST_CELLS = 2
"""Cells that a line of the table names; more are counted."""


@click.command("check-sources")
@options.matrix
@options.cells
@options.ca_bundle
@options.common
def command(
    matrix: str,
    cells: tuple[str, ...],
    ca_bundle: Path | None,
    console: Console,
    overlay: Path | None,
) -> None:
    """Prove that bases, packages, wheels and vendor parts can be had, before building."""
    from imagegen.sources.preflight import check, sources_of
    from imagegen.workflow.project import Project, select

    started = time.monotonic()
    project = Project(overlay)
    family = project.family(matrix)
    specs = select(family.specs, cells)
    means = _means(project, ca_bundle)
    uses = sources_of(specs, project.catalog, _compiled(project), _rendered(project, family, specs))
    found = check(uses, means)
    _report(found, len(specs), time.monotonic() - started, console)
    lost = [finding for finding in found if finding.probe.state == "missing"]
    if lost:
        raise BuildError(*(_problem(finding) for finding in lost))


def _means(project: Project, ca_bundle: Path | None) -> Means:
    import os
    from pathlib import Path

    from imagegen.config.network import pip_config_files, read_build_env
    from imagegen.config.state import state_folder
    from imagegen.sources.artifacts import read_artifacts
    from imagegen.sources.mirrors import read_mirrors
    from imagegen.sources.preflight import Means

    return Means(
        engine=_engine(),
        env=read_build_env(os.environ, ca_bundle, pip_config_files(Path.home())),
        artifacts=read_artifacts(project.payload),
        mirrors=read_mirrors(project.payload),
        state=state_folder() / "sources",
        ca_bundle=ca_bundle,
    )


def _engine() -> Engine | None:
    """The engine; without one, this host's own clients are asked alone."""
    from imagegen.engine.client import connect

    try:
        return connect()
    except EngineError:
        return None


def _rendered(project: Project, family: Family, specs: Sequence[ImageSpec]) -> dict[str, str]:
    """Dockerfiles by id of their cell; a cell that no template can install yet has none."""
    found = {}
    for spec in specs:
        with suppress(RenderError):
            (recipe,) = project.recipes(family, [spec.cell.id])
            found[spec.cell.id] = recipe.dockerfile
    return found


def _compiled(project: Project) -> set[str]:
    """The components that have a build stage of their own."""
    template = "dockerfiles/components/{}/build.j2"
    return {
        name for name in project.catalog.components if project.payload.find(template.format(name))
    }


def _report(found: Sequence[Finding], cells: int, seconds: float, console: Console) -> None:
    from imagegen.text import human_seconds

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
    said = ", ".join(f"{count} {state}" for state, count in counts.items())
    console.line(f"{len(found)} sources of {cells} cells: {said}, in {human_seconds(seconds)}")


def _cells(names: Sequence[str], all_cells: int) -> str:
    if len(names) == all_cells:
        return "all"
    return " ".join(names) if len(names) <= MOST_CELLS else f"{len(names)} cells"


def _problem(finding: Finding) -> Problem:
    return Problem(
        f"{finding.source} cannot be had",
        evidence=(finding.probe.evidence, f"needed by: {' '.join(finding.cells)}"),
        hint=HINTS[finding.source.kind],
    )
