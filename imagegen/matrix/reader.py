"""Read a matrix file, check it against the catalog, and expand it into cells."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, cast

from imagegen.config import schemas
from imagegen.config.payload import (
    MATRICES_FOLDER,
    Payload,
    shipped_root,
    shown,
    there,
)
from imagegen.config.schema_check import check_schema
from imagegen.config.yamlfile import load, missing
from imagegen.errors import ConfigError, NothingSelectedError, Problem
from imagegen.matrix.cells import expand
from imagegen.matrix.checks import check

if TYPE_CHECKING:
    from imagegen.matrix.document import MatrixDocument
    from imagegen.model.catalog import Catalog
    from imagegen.model.cell import Cell

LOCK_SUFFIX = ".lock.yaml"


@dataclass(frozen=True)
class Matrix:
    """One matrix file, expanded; `cells` keep the order of the axes and their values."""

    name: str
    title: str
    file: str
    cells: tuple[Cell, ...]
    owner: str
    expires: str


def matrix_names(payload: Payload) -> tuple[str, ...]:
    """List the names of all matrices in the payload, sorted."""
    files = payload.names(MATRICES_FOLDER)
    return tuple(
        name.removesuffix(".yaml")
        for name in files
        if name.endswith(".yaml") and not name.endswith(LOCK_SUFFIX)
    )


def read_matrix(payload: Payload, name: str, catalog: Catalog) -> Matrix:
    """Read the matrix of this name, or at this path if it ends in `.yaml`, and expand it.

    Raises NothingSelectedError when there is none, ConfigError with every problem in it.
    """
    path, as_shown = _locate(payload, name)
    found = load(path, as_shown)
    # The tests of the tool have checked its own matrices against the schema.
    trusted = path.is_relative_to(shipped_root())
    problems = () if trusted else check_schema(found, schemas.MATRIX)
    document = cast("MatrixDocument", found)
    if not problems:
        problems = tuple(check(document, catalog))
    if problems:
        raise ConfigError(*problems)
    data = document.data
    return Matrix(
        name=data["name"],
        title=data.get("title", ""),
        file=document.file,
        cells=tuple(expand(document)),
        owner=data.get("owner", ""),
        expires=data.get("expires", ""),
    )


def no_such_matrix(payload: Payload, name: str) -> NothingSelectedError:
    """Make the error for a name that no matrix has."""
    known = matrix_names(payload)
    near = get_close_matches(name, known, 1)
    problem = Problem(
        f"there is no matrix `{name}`",
        evidence=(f"known matrices: {', '.join(known) or 'none'}",),
        hint=f"did you mean `{near[0]}`?" if near else f"write `{MATRICES_FOLDER}/{name}.yaml`",
    )
    return NothingSelectedError(problem)


def _locate(payload: Payload, name: str) -> tuple[Path, str]:
    """Find the file of a matrix. Raises NothingSelectedError where there is none."""
    if name.endswith((".yaml", ".yml")):
        path = Path(name)
        if not there(path):
            raise NothingSelectedError(missing(path, name))
        return path, name
    found = payload.find(f"{MATRICES_FOLDER}/{name}.yaml") if name else None
    if found is None:
        raise no_such_matrix(payload, name)
    return found, shown(found)
