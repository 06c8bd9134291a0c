"""The rows of one catalog file -> releases: those written out, and those of its tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from imagegen.catalog.tables import rows_of
from imagegen.config import schemas
from imagegen.config.document import Document, dotted
from imagegen.config.schema_check import check_schema
from imagegen.errors import Problem
from imagegen.model import constraint
from imagegen.model.catalog import Release

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from imagegen.catalog.data import ComponentDocument, ReleaseData, VirtualDocument

BY_NAME = ("os", "gpu", "instance", "device", "flavour")
"""Names whose values are names, not versions."""

_Row = tuple[Mapping[str, object], int, str]  # the row, its line, its key path


def read_releases(
    document: ComponentDocument | VirtualDocument, *, checked: bool
) -> tuple[tuple[Release, ...], list[Problem]]:
    """All releases of a file in its order, and what is wrong with rows that a schema cannot see.

    `checked` holds the rows of tables against the schema of a release, too.
    """
    releases: list[Release] = []
    problems: list[Problem] = []
    for data, line, path in _rows(document, problems):
        wrong: list[Problem] = []
        if checked and path.startswith("tables"):
            wrong = list(_against_schema(data, document.file, line, path))
        row = cast("ReleaseData", data)
        wrong = wrong or list(_bad_row(row, document.file, line, path))
        problems += wrong
        if not wrong:
            releases.append(_release(document.data["name"], row, document.file, line))
    return tuple(releases), problems


def _rows(document: ComponentDocument | VirtualDocument, problems: list[Problem]) -> Iterator[_Row]:
    for index, release in enumerate(document.data.get("releases", ())):
        yield release, document.line(["releases", index]), dotted(["releases", index])
    for index, table in enumerate(document.data.get("tables", ())):
        path = dotted(["tables", index, "lines"])
        first = document.line(["tables", index, "lines"]) + 1
        for number, row, problem in rows_of(table):
            if problem:
                problems.append(Problem(problem, document.file, first + number, path))
            else:
                yield row, first + number, path


def _against_schema(
    row: Mapping[str, object], file: str, line: int, path: str
) -> Iterator[Problem]:
    plain = {**row, "only_by_full_name": True} if "only_by_full_name" in row else dict(row)
    for found in check_schema(Document(plain, file), schemas.RELEASE):
        yield Problem(found.text, file, line, f"{path}.{found.key}", found.evidence, found.hint)


def _bad_row(row: ReleaseData, file: str, line: int, path: str) -> Iterator[Problem]:
    version = row.get("version", "")
    if not constraint.is_version(version) and not _is_virtual(file):
        text = f"`{version}` is not a version"
        yield Problem(text, file, line, f"{path}.version", hint="write it as digits and dots")
    for kind, constraints in _constraints(row).items():
        for name, texts in constraints.items():
            for text in texts:
                why = "" if name in BY_NAME else constraint.problem_with(text)
                if why:
                    yield Problem(f"`{text}` {why}", file, line, f"{path}.{kind}.{name}")


def _is_virtual(file: str) -> bool:
    """A GPU or a machine type has a name, not a version."""
    return "/virtual/" in file


def alternatives(texts: str | Sequence[str]) -> tuple[str, ...]:
    return (texts,) if isinstance(texts, str) else tuple(texts)


def _constraints(row: ReleaseData) -> dict[str, dict[str, tuple[str, ...]]]:
    """What a row asks of other names, by the key that says how."""
    by_key = {
        "requires": row.get("requires", {}),
        "limits": row.get("limits", {}),
        "built_for": row.get("built_for", {}),
        "known_with": row.get("known_with", {}),
        "recommends": row.get("recommends", {}),
    }
    return {
        key: {name: alternatives(texts) for name, texts in asked.items()}
        for key, asked in by_key.items()
    }


def _release(component: str, row: ReleaseData, file: str, line: int) -> Release:
    constraints = _constraints(row)
    return Release(
        component=component,
        version=row["version"],
        variant=row.get("variant", ""),
        requires=constraints["requires"],
        apt=row.get("apt", {}),
        build_apt=row.get("build_apt", {}),
        wheels=row.get("wheels", {}),
        facts=row.get("facts", {}),
        origin=row["origin"],
        source=row["source"],
        file=file,
        line=line,
        limits=constraints["limits"],
        built_for=constraints["built_for"],
        known_with=constraints["known_with"],
        recommends=constraints["recommends"],
        provides=row.get("provides", {}),
        aliases=alternatives(row.get("aliases", ())),
        rank=int(row.get("rank", 0)),
        only_by_full_name=row.get("only_by_full_name") in (True, "true"),
        confidence=row.get("confidence", "high"),
        index=row.get("index", ""),
        tarball=row.get("tarball", {}),
        artifact=row.get("artifact", ""),
        notes=tuple(row.get("notes", ())),
    )
