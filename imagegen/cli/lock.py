"""`imagegen lock`: write down exactly what the images of a matrix were made of."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from imagegen.cli import options
from imagegen.errors import BuildError, Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from imagegen.console.console import Console
    from imagegen.engine.client import Engine
    from imagegen.model.recipe import Recipe
    from imagegen.sources.lock_file import Lock
    from imagegen.sources.locked_build import Built


@click.command("lock")
@options.matrix
@options.cells
@click.option("--out", type=click.Path(path_type=Path), help="another file than the matrix's own")
@options.ca_bundle
@options.common
def command(
    matrix: str,
    cells: tuple[str, ...],
    out: Path | None,
    ca_bundle: Path | None,
    console: Console,
    overlay: Path | None,
) -> None:
    """Lock what is in the images of a matrix: base, packages, wheels, vendor parts.

    The cells have to be built: a lock says what was seen to work, and not what might.
    """
    from imagegen.config.network import host_network
    from imagegen.engine.client import connect
    from imagegen.sources.lock_file import lock_path
    from imagegen.sources.locked_build import lock_of
    from imagegen.sources.supply import open_store
    from imagegen.workflow.project import Project

    project = Project(overlay)
    family = project.family(matrix)
    recipes = project.recipes(family, cells)
    engine = connect()
    env = host_network(ca_bundle)
    store = open_store(project.payload, ca_bundle, allow_unverified=True)
    lock = lock_of(engine, _built(engine, recipes), env, store, console.note)
    path = out or lock_path(family.matrix.file)
    _write(path, lock)
    _report(path, lock, console)


def _built(engine: Engine, recipes: Sequence[Recipe]) -> list[Built]:
    """The images of the recipes. Raises BuildError for those that are not as the recipes say."""
    from imagegen.builder.stale import find_stale
    from imagegen.model.labels import LABEL_LOCK
    from imagegen.sources.locked_build import Built

    problems, built = [], []
    for found in find_stale(engine, recipes, force=False):
        cell = found.recipe.spec.cell
        if found.why or found.image is None:
            text, hint = f"`{cell.id}` is not built: {found.why}", "imagegen build"
        elif LABEL_LOCK in found.image.labels:
            text = f"`{cell.id}` was built from a lock"
            hint = "`imagegen build --force` takes what is there now, and that can be locked"
        else:
            built.append(Built(found.recipe, found.image.id))
            continue
        problems.append(Problem(text, hint=f"{hint} --matrix {cell.matrix} {cell.name}"))
    if problems:
        raise BuildError(*problems)
    return built


def _write(path: Path, lock: Lock) -> None:
    """Under a temporary name first: a build never reads half a lock."""
    from imagegen.sources.lock_file import as_text

    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(path.suffix + ".part")
    temporary.write_text(as_text(lock), encoding="utf-8")
    temporary.replace(path)


def _report(path: Path, lock: Lock, console: Console) -> None:
    rows = [
        {
            "system": name,
            "cells": sum(cell.system == name for cell in lock.cells.values()),
            "packages": len(one.apt),
            "wheels": len(one.wheels),
            "base": one.base,
        }
        for name, one in lock.systems.items()
    ]
    console.data({"lock": str(path), "systems": rows})
    console.table(
        ("system", "cells", "packages", "wheels", "base"),
        [tuple(str(value) for value in row.values()) for row in rows],
    )
    console.line(f"{path}: {len(lock.cells)} cells locked")
