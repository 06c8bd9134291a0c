"""Read the releases of one catalog file: those in the YAML, and those of the CSV beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from imagegen.catalog.tables import Table, TableRow, rows_of
from imagegen.config import schemas
from imagegen.config.document import Document, dotted
from imagegen.config.schema_check import check_schema
from imagegen.errors import Problem
from imagegen.model import constraint
from imagegen.model.release import Release

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from imagegen.catalog.data import ComponentDocument, ReleaseData, VirtualDocument

BY_NAME = ("os", "gpu", "instance", "device", "flavour")
"""Names whose values are names, not versions."""


_Constraints = dict[str, dict[str, tuple[str, ...]]]


class _Place(NamedTuple):
    """The place of a mistake for a user; `key` is a key path, or a column."""

    file: str
    line: int
    key: str


class _Row(NamedTuple):
    """A release as its file has it; `place` finds one of its key paths in that file."""

    release: Mapping[str, object]
    file: str
    line: int
    place: Callable[[str], _Place]


def read_releases(
    document: ComponentDocument | VirtualDocument, table: Table | None, *, checked: bool
) -> tuple[tuple[Release, ...], list[Problem]]:
    """Read all releases of a component in their order, and what is wrong with them.

    Those of the YAML file come first, then the lines of its table. `checked` also checks the lines
    against the schema of a release; `document` was checked before.
    """
    problems: list[Problem] = []
    releases: list[Release] = []
    rows = [*_written_out(document), *_tabular(document, table, problems, checked=checked)]
    for row in rows:
        wrong = list(_against_schema(row)) if checked and table and row.file == table.file else []
        constraints = {} if wrong else _constraints(row)
        wrong = wrong or list(_bad_row(row, constraints))
        problems += wrong
        if not wrong:
            releases.append(_release(document.data["name"], row, constraints))
    return tuple(releases), list(dict.fromkeys(problems))


def _written_out(document: ComponentDocument | VirtualDocument) -> Iterator[_Row]:
    for index, release in enumerate(document.data.get("releases", ())):
        line, path = document.line(["releases", index]), dotted(["releases", index])

        def place(key: str, line: int = line, path: str = path) -> _Place:
            return _Place(document.file, line, f"{path}.{key}")

        yield _Row(cast("Mapping[str, object]", release), document.file, line, place)


def _tabular(
    document: ComponentDocument | VirtualDocument,
    table: Table | None,
    problems: list[Problem],
    *,
    checked: bool,
) -> Iterator[_Row]:
    for row in rows_of(table, checked=checked) if table else ():
        if row.problem:
            problems.append(row.problem)
        elif table:
            yield _Row(row.release, table.file, row.line, _finder(document, table, row))


def _finder(
    document: ComponentDocument | VirtualDocument, table: Table, row: TableRow
) -> Callable[[str], _Place]:
    """Make a function that finds the column of a key in a line.

    It finds a key that is the same for all lines in the YAML file.
    """

    def place(key: str) -> _Place:
        columns = table.columns_of(row.kind, key)
        if columns or not key:
            return _Place(table.file, row.line, ", ".join(columns))
        path = ["rows", row.kind, key.split(".")[0].split("[")[0]]
        return _Place(document.file, document.line(path), f"rows.{row.kind}.{key}")

    return place


def _against_schema(row: _Row) -> Iterator[Problem]:
    for found in check_schema(Document(row.release, ""), schemas.RELEASE):
        yield Problem(found.text, *row.place(found.key), found.evidence, found.hint)


def _bad_row(row: _Row, constraints: _Constraints) -> Iterator[Problem]:
    version = cast("ReleaseData", row.release).get("version", "")
    if not constraint.is_version(version) and not _is_virtual(row.file):
        text = f"`{version}` is not a version"
        yield Problem(text, *row.place("version"), hint="write it as digits and dots")
    yield from _nothing_to_doubt(row)
    for kind, asked in constraints.items():
        for name, texts in asked.items():
            for text in texts:
                why = "" if name in BY_NAME else constraint.problem_with(text)
                if why:
                    yield Problem(f"`{text}` {why}", *row.place(f"{kind}.{name}"))


def _nothing_to_doubt(row: _Row) -> Iterator[Problem]:
    """Report each name of `uncertain` that the row has no value of."""
    data = cast("ReleaseData", row.release)
    for name in alternatives(data.get("uncertain", ())):
        if data.get("provides", {}).get(name, "unknown") == "unknown":
            text = f"`{name}` has no value in `provides` that could be uncertain"
            yield Problem(text, *row.place("uncertain"), hint="leave it out, or give the value")


def _is_virtual(file: str) -> bool:
    """Say whether a file is of a GPU or a machine type, which has a name and no version."""
    return "/virtual/" in file


def alternatives(texts: str | Sequence[str]) -> tuple[str, ...]:
    """Return one text, or several, as a tuple."""
    return (texts,) if isinstance(texts, str) else tuple(texts)


def _constraints(found: _Row) -> _Constraints:
    """Map each kind of constraint of a row to the names and constraints that it has."""
    row = cast("ReleaseData", found.release)
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


def _release(component: str, found: _Row, constraints: _Constraints) -> Release:
    row = cast("ReleaseData", found.release)
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
        file=found.file,
        line=found.line,
        limits=constraints["limits"],
        built_for=constraints["built_for"],
        known_with=constraints["known_with"],
        recommends=constraints["recommends"],
        provides=row.get("provides", {}),
        uncertain=alternatives(row.get("uncertain", ())),
        aliases=alternatives(row.get("aliases", ())),
        rank=int(row.get("rank", 0)),
        confidence=row.get("confidence", "high"),
        index=row.get("index", ""),
        tarball=row.get("tarball", {}),
        artifact=row.get("artifact", ""),
        notes=tuple(row.get("notes", ())),
        patched=row.get("patched", {}),
    )
