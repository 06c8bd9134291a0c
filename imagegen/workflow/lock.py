"""`imagegen lock` writes down exactly what the images of a matrix were made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from imagegen.builder.up_to_date import find_stale
from imagegen.config.files import write_whole
from imagegen.config.network import host_network
from imagegen.engine import client
from imagegen.errors import BuildError, Problem
from imagegen.model.labels import LABEL_LOCK
from imagegen.sources.lock_file import as_text, lock_path
from imagegen.sources.locked_build import Built, lock_of
from imagegen.sources.supply import open_store
from imagegen.workflow.project import Project

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from imagegen.builder.up_to_date import Staleness
    from imagegen.console.console import Console
    from imagegen.sources.lock_file import Lock


@dataclass(frozen=True)
class LockOptions:
    """The options of the command line, with the same names."""

    matrix: str
    cells: tuple[str, ...] = ()
    out: Path | None = None
    ca_bundle: Path | None = None
    overlay: Path | None = None


def lock(options: LockOptions, console: Console) -> None:
    """Write the lock file of a matrix from what is in its images."""
    project = Project(options.overlay)
    family = project.family(options.matrix)
    recipes = project.recipes(family, options.cells)
    engine = client.connect()
    network = host_network(options.ca_bundle)
    store = open_store(project.payload, options.ca_bundle, allow_unverified=True)
    built = _built(find_stale(engine, recipes, force=False))
    made = lock_of(engine, built, network, store, console.note)
    path = options.out or lock_path(family.matrix.file)
    write_whole(path, as_text(made).encode())
    _show(path, made, console)


def _built(judged: Sequence[Staleness]) -> list[Built]:
    """Return the images of the recipes.

    Raises BuildError for images that are missing, stale, or were built from a lock.
    """
    problems, built = [], []
    for found in judged:
        cell = found.recipe.spec.cell
        if found.why or found.image is None:
            state = "not built" if found.image is None else "stale"
            text, hint = f"`{cell.id}` is {state}: {found.why}", "imagegen build"
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


def _show(path: Path, made: Lock, console: Console) -> None:
    rows = [
        {
            "system": name,
            "cells": sum(cell.system == name for cell in made.cells.values()),
            "packages": len(one.apt),
            "wheels": len(one.wheels),
            "base": one.base,
        }
        for name, one in made.systems.items()
    ]
    console.data({"lock": str(path), "systems": rows})
    console.table(
        ("system", "cells", "packages", "wheels", "base"),
        [tuple(str(value) for value in row.values()) for row in rows],
    )
    what = "cell" if len(made.cells) == 1 else "cells"
    console.line(f"{path}: {len(made.cells)} {what} locked")
