"""Read releases from a CSV file with a header; the YAML beside it says what the columns mean.

    rows:
      wheel:
        version: "{version}"
        requires: {python: "{python}"}
        origin: "pip torch=={version}"
        source: "{source}"
    keys:
      source: {cog: replicate/cog torch_compatibility.json}

    version,python,source
    2.5.1+cu124,3.9 3.10 3.11,cog

`rows` has a template for each kind of row; if there are several, the column `kind` names it. A text
is left out if a column in it is empty. A value that is one column and nothing else becomes a list
if its cell has spaces. `keys` explains short words in a column: by a text that replaces the word,
or by a mapping of more columns.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, cast

from imagegen.config.document import near
from imagegen.config.yamlfile import check_size
from imagegen.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from imagegen.catalog.data import TableData

KIND = "kind"
LISTED = ("requires", "limits", "built_for", "known_with", "recommends", "aliases", "uncertain")
"""The keys of a release whose values are alternatives."""

_FIELD = re.compile(r"\{([a-z0-9_]+)\}")
_INDEX = re.compile(r"\[\d+\]")


class Leaf(NamedTuple):
    """One text of a template, with the keys that lead to it and the columns in both.

    `is_item` says that it is one of a list, `is_column` that it is one column and nothing else.
    """

    path: tuple[str, ...]
    text: str
    columns: tuple[str, ...]
    is_item: bool
    is_column: bool
    path_has_columns: bool


class TableRow(NamedTuple):
    """A line of the file: its release as a mapping, or the `problem` with it."""

    line: int
    kind: str
    release: dict[str, object]
    problem: Problem | None = None


@dataclass(frozen=True)
class Table:
    """A CSV file of releases; `file` is its name for users, `data` the YAML that explains it."""

    path: Path
    file: str
    data: TableData

    def templates(self) -> dict[str, tuple[Leaf, ...]]:
        """Return the texts of each kind of row."""
        return {kind: tuple(_leaves(row, ())) for kind, row in self.data.get("rows", {}).items()}

    def columns_of(self, kind: str, key: str) -> tuple[str, ...]:
        """List the columns that fill a key path of a row, such as `requires.python`."""
        bare = _INDEX.sub("", key)
        found = [leaf for leaf in self.templates()[kind] if bare and _is_below(leaf.path, bare)]
        return tuple(dict.fromkeys(name for leaf in found for name in leaf.columns))

    def header(self) -> list[str]:
        """Read the columns, in their order."""
        with self.path.open(encoding="utf-8-sig", newline="") as opened:
            return [name.strip() for name in next(csv.reader(opened), [])]

    def cells_of(self, kind: str, release: Mapping[str, object]) -> dict[str, str]:
        """Find the cells that would make a release, by reading the templates backwards.

        Columns with `keys` are left out: a release does not have their short words.
        """
        found = {KIND: kind} if len(self.templates()) > 1 else {}
        for leaf in self.templates()[kind]:
            value = _value_at(release, leaf.path)
            if value and len(leaf.columns) == 1 and not leaf.path_has_columns:
                before, after = map(re.escape, leaf.text.split(f"{{{leaf.columns[0]}}}", 1))
                match = re.fullmatch(f"{before}(.+){after}", value)
                found.update({leaf.columns[0]: match[1]} if match else {})
        return {name: cell for name, cell in found.items() if name not in self.data.get("keys", {})}


def rows_of(table: Table, *, checked: bool = True) -> Iterator[TableRow]:
    """Read every line below the header; `checked` also checks its cells with the templates."""
    try:
        check_size(table.path, table.file)
        with table.path.open(encoding="utf-8-sig", newline="") as opened:
            reader = csv.reader(opened, strict=True)
            try:
                yield from _read(table, reader, checked=checked)
            except csv.Error as error:
                yield _wrong(table, reader.line_num, f"is not CSV: {error}")
    except (OSError, UnicodeDecodeError) as error:
        yield _wrong(table, 1, f"cannot be read: {error}", hint="save it as CSV in UTF-8")


def _read(table: Table, reader: Iterator[list[str]], *, checked: bool) -> Iterator[TableRow]:
    header = [name.strip() for name in next(reader, [])]
    templates = table.templates()
    problems = list(_header_problems(table, header, templates))
    yield from problems
    if problems:
        return
    keys = table.data.get("keys", {})
    used = {kind: _used(leaves, keys) for kind, leaves in templates.items()}
    only = next(iter(templates), "")
    for cells in reader:
        line = cast("int", reader.line_num)  # type: ignore[attr-defined]
        if len(cells) != len(header):
            text = f"has {len(cells)} cells, the header {len(header)} columns"
            yield _wrong(table, line, text, hint="an empty cell still has its comma")
            continue
        values = dict(zip(header, map(str.strip, cells), strict=True))
        kind = values.get(KIND, only)
        wrong = [*_unknown_words(table, line, values, kind)]
        if checked and not wrong:
            wrong = [*_unused_cells(table, line, values, kind, used[kind])]
        yield from wrong or [TableRow(line, kind, _filled(templates[kind], values, keys))]


def _wrong(table: Table, line: int, text: str, key: str = "", **more: str) -> TableRow:
    evidence = (more["evidence"],) if "evidence" in more else ()
    problem = Problem(text, table.file, line, key, evidence, more.get("hint", ""))
    return TableRow(line, "", {}, problem)


def _header_problems(
    table: Table, header: Sequence[str], templates: Mapping[str, Sequence[Leaf]]
) -> Iterator[TableRow]:
    keys = table.data.get("keys", {})
    filled = {name for leaves in templates.values() for leaf in leaves for name in leaf.columns}
    made = {name for column in keys.values() for more in column.values() for name in _names(more)}
    known = {*filled, *keys, KIND} - (made - {*keys})
    for name in dict.fromkeys(header):
        if header.count(name) > 1:
            yield _wrong(table, 1, "is a column twice", name, hint="keep one of them")
        if name not in known:
            hint = near(name, sorted(known), "remove the column, or say what it means in `rows`")
            yield _wrong(table, 1, "is a column that is not in `rows`", name, hint=hint)
    missing = sorted(filled - made - {*header})
    missing += [KIND] if len(templates) > 1 and KIND not in header else []
    for name in missing:
        yield _wrong(table, 1, "is a column that is not in the header", name, hint="add it")


def _names(value: str | Mapping[str, str]) -> tuple[str, ...]:
    return tuple(value) if isinstance(value, Mapping) else ()


def _used(leaves: Sequence[Leaf], keys: Mapping[str, Mapping[str, object]]) -> frozenset[str]:
    """Return the columns that rows of a kind are made of."""
    filled = {name for leaf in leaves for name in leaf.columns}
    of_keys = {
        column
        for column, words in keys.items()
        if any(filled & {*_names(cast("str | Mapping[str, str]", one))} for one in words.values())
    }
    return frozenset({KIND, *filled, *of_keys})


def _unknown_words(
    table: Table, line: int, values: Mapping[str, str], kind: str
) -> Iterator[TableRow]:
    """Report a kind that has no template, and words that are no keys of their column."""
    known: Mapping[str, object]
    for column, known in {KIND: table.data.get("rows", {}), **table.data.get("keys", {})}.items():
        word = kind if column == KIND else values.get(column, "")
        if word not in known and (word or column == KIND):
            evidence = f"known: {', '.join(known)}"
            hint = near(word, [*known], f"add it to `{'rows' if column == KIND else 'keys'}`")
            text = f"`{word}` is not an allowed value"
            yield _wrong(table, line, text, column, evidence=evidence, hint=hint)


def _unused_cells(
    table: Table, line: int, values: Mapping[str, str], kind: str, used: frozenset[str]
) -> Iterator[TableRow]:
    for column, cell in values.items():
        if cell and column not in used:
            text = f"`{cell}` has no meaning in a row of kind `{kind}`"
            yield _wrong(table, line, text, column, hint="leave the cell empty")


def _filled(
    leaves: Sequence[Leaf],
    cells: Mapping[str, str],
    keys: Mapping[str, Mapping[str, str | Mapping[str, str]]],
) -> dict[str, object]:
    """Fill a template with the cells of a line."""
    values = dict(cells)
    for column, words in keys.items():
        word = values.get(column)
        if word:
            meant = words[word]
            values.update(meant if isinstance(meant, Mapping) else {column: meant})
    row: dict[str, object] = {}
    for leaf in leaves:
        columns = leaf.columns
        if leaf.is_column:
            value = values.get(columns[0], "")
            if value:
                listed = " " in value and leaf.path[0] in LISTED
                _put(row, leaf.path, value.split() if listed else value, leaf.is_item)
        elif not columns:
            _put(row, leaf.path, leaf.text, leaf.is_item)
        elif all(values.get(name) for name in columns):
            path = leaf.path
            if leaf.path_has_columns:
                path = tuple(_with_cells(key, values) for key in path)
            _put(row, path, _with_cells(leaf.text, values), leaf.is_item)
    return row


def _with_cells(text: str, values: Mapping[str, str]) -> str:
    return _FIELD.sub(lambda found: values[found[1]], text)


def _leaves(node: object, path: tuple[str, ...], is_item: bool = False) -> Iterator[Leaf]:
    if isinstance(node, Mapping):
        for key, value in node.items():
            yield from _leaves(value, (*path, key), is_item)
    elif isinstance(node, list):
        for value in node:
            yield from _leaves(value, path, True)
    else:
        text = node if isinstance(node, str) else str(node).lower()
        in_text, in_path = _FIELD.findall(text), _FIELD.findall(" ".join(path))
        is_column = not in_path and text == f"{{{''.join(in_text)}}}"
        yield Leaf(path, text, (*in_text, *in_path), is_item, is_column, bool(in_path))


def _value_at(release: Mapping[str, object], path: Sequence[str]) -> str:
    """Return the text at a key path, or its alternatives in one cell; empty for anything else."""
    found: object = release
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    return " ".join(map(str, found)) if isinstance(found, list) else str(found or "")


def _is_below(path: Sequence[str], key: str) -> bool:
    """Say whether the text at a path, which may contain columns, is at a key or below it."""
    pairs = zip(path, key.split("."), strict=False)
    return all(_FIELD.search(part) or part == one for part, one in pairs)


def _put(row: dict[str, object], path: Sequence[str], value: object, is_item: bool) -> None:
    """Put a value into a row at a key path, and make the mappings on the way."""
    for key in path[:-1]:
        row = cast("dict[str, object]", row.setdefault(key, {}))
    if is_item:
        cast("list[object]", row.setdefault(path[-1], [])).append(value)
    else:
        row[path[-1]] = value
