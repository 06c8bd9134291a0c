"""The rows of one catalog file -> releases: those written out, and those of its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from imagegen.catalog.tables import rows_of
from imagegen.config import schemas
from imagegen.config.document import Document, dotted
from imagegen.config.yamlfile import check_schema
from imagegen.errors import Problem
from imagegen.model import constraint
from imagegen.model.catalog import Release

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

BY_NAME = ("os", "gpu", "instance", "device", "flavour")
"""Names whose values are names, not versions."""

WISHES = ("requires", "constrains", "pairs", "known", "warns")
_Row = tuple[dict[str, Any], int, str]  # the row, its line, its key path


def read_releases(
    document: Document, *, checked: bool
) -> tuple[tuple[Release, ...], list[Problem]]:
    """All releases of a file in its order, and what is wrong with rows that a schema cannot see.

    `checked` holds the rows of tables against the schema of a release, too.
    """
    releases: list[Release] = []
    problems: list[Problem] = []
    for row, line, path in _rows(document, problems):
        wrong: list[Problem] = []
        if checked and path.startswith("tables"):
            wrong = list(_against_schema(row, document.file, line, path))
        wrong = wrong or list(_bad_row(row, document.file, line, path))
        problems += wrong
        if not wrong:
            releases.append(_release(document.data["name"], row, document.file, line))
    return tuple(releases), problems


def _rows(document: Document, problems: list[Problem]) -> Iterator[_Row]:
    for index, row in enumerate(document.data.get("releases", ())):
        yield row, document.line(["releases", index]), dotted(["releases", index])
    for index, table in enumerate(document.data.get("tables", ())):
        path = dotted(["tables", index, "lines"])
        first = document.line(["tables", index, "lines"]) + 1
        for number, row, problem in rows_of(table):
            if problem:
                problems.append(Problem(problem, document.file, first + number, path))
            else:
                yield row, first + number, path


def _against_schema(row: Mapping[str, Any], file: str, line: int, path: str) -> Iterator[Problem]:
    plain = {**row, "named": True} if "named" in row else dict(row)
    for found in check_schema(Document(plain, file), schemas.RELEASE):
        yield Problem(found.text, file, line, f"{path}.{found.key}", found.evidence, found.hint)


def _bad_row(row: Mapping[str, Any], file: str, line: int, path: str) -> Iterator[Problem]:
    version = row.get("version", "")
    if not constraint.is_version(version) and not _is_virtual(file):
        text = f"`{version}` is not a version"
        yield Problem(text, file, line, f"{path}.version", hint="write it as digits and dots")
    for kind in WISHES:
        for name, wishes in row.get(kind, {}).items():
            for wish in alternatives(wishes):
                why = "" if name in BY_NAME else constraint.problem_with(wish)
                if why:
                    yield Problem(f"`{wish}` {why}", file, line, f"{path}.{kind}.{name}")


def _is_virtual(file: str) -> bool:
    """A GPU or a machine type has a name, not a version."""
    return "/virtual/" in file


def alternatives(wishes: str | Sequence[str]) -> tuple[str, ...]:
    return (wishes,) if isinstance(wishes, str) else tuple(wishes)


def _release(component: str, row: Mapping[str, Any], file: str, line: int) -> Release:
    wishes = {
        kind: {name: alternatives(wish) for name, wish in row.get(kind, {}).items()}
        for kind in WISHES
    }
    return Release(
        component=component,
        version=row["version"],
        variant=row.get("variant", ""),
        requires=wishes["requires"],
        apt=row.get("apt", {}),
        build_apt=row.get("build_apt", {}),
        wheels=row.get("wheels", {}),
        facts=row.get("facts", {}),
        origin=row["origin"],
        source=row["source"],
        file=file,
        line=line,
        constrains=wishes["constrains"],
        pairs=wishes["pairs"],
        known=wishes["known"],
        warns=wishes["warns"],
        provides=row.get("provides", {}),
        also=alternatives(row.get("also", ())),
        rank=int(row.get("rank", 0)),
        named=row.get("named") in (True, "true"),
        confidence=row.get("confidence", "high"),
        index=row.get("index", ""),
        tarball=row.get("tarball", {}),
        artifact=row.get("artifact", ""),
        notes=tuple(row.get("notes", ())),
    )
