"""Releases as a table: one line of text a row, and once for all lines what the columns mean.

A catalog of many builds is read in milliseconds this way: to YAML the whole table is one scalar.

    tables:
      - columns: [version, python, source]
        row: {requires: {python: "{python}"}, origin: "pip torch=={version}", source: "{source}"}
        sources: {cog: replicate/cog torch_compatibility.json}
        lines: |
          2.5.1+cu124 | 3.9 3.10 3.11 | cog

Cells are set apart by ` | `; `-` is nothing, and what speaks of an empty column is left out. A
value that is one column and nothing else becomes a list where its cell has spaces. A line that
starts with `#` is a comment.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from imagegen.catalog.data import TableData

NOTHING = "-"
_FIELD = re.compile(r"\{([a-z0-9_]+)\}")
_Leaf = tuple[tuple[str, ...], str, tuple[str, ...]]  # key path, text, the columns in it


def rows_of(table: TableData) -> Iterator[tuple[int, dict[str, object], str]]:
    """(line below `lines:` from 0, release as a mapping, problem in words) of every row."""
    columns, sources = table["columns"], table.get("sources", {})
    leaves = list(_leaves(table["row"], ()))
    for number, line in enumerate(table["lines"].split("\n")):
        if not line.strip() or line.startswith("#"):
            continue
        cells = [cell.strip() for cell in line.split(" | ")]
        if len(cells) != len(columns):
            yield number, {}, f"has {len(cells)} cells, the table {len(columns)} columns"
            continue
        values = dict(zip(columns, cells, strict=True))
        if "source" in values and values["source"] in sources:
            values["source"] = sources[values["source"]]
        yield number, _row(leaves, values), ""


def _leaves(node: object, path: tuple[str, ...]) -> Iterator[_Leaf]:
    if isinstance(node, dict):
        for key, value in node.items():
            yield from _leaves(value, (*path, key))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _leaves(value, (*path, f"[{index}]"))
    else:
        text = node if isinstance(node, str) else str(node).lower()
        yield path, text, tuple(_FIELD.findall(text))


def _row(leaves: Sequence[_Leaf], values: Mapping[str, str]) -> dict[str, object]:
    row: dict[str, object] = {}
    for path, text, fields in leaves:
        if fields:
            if any(values.get(field, NOTHING) == NOTHING for field in fields):
                continue
            whole = len(fields) == 1 and text == f"{{{fields[0]}}}"
            filled = _FIELD.sub(lambda found: values[found.group(1)], text)
            listed = whole and " " in filled and path[0] in LISTED
            _put(row, path, filled.split() if listed else filled)
        else:
            _put(row, path, text)
    return row


LISTED = ("requires", "limits", "built_for", "known_with", "recommends", "aliases")
"""Keys of a release whose values are alternatives."""


def _put(row: dict[str, object], path: Sequence[str], value: object) -> None:
    """Put a value into a row at a key path; what is on the way is made."""
    for key, after in zip(path, [*path[1:], ""], strict=True):
        if key.startswith("["):
            return
        if after.startswith("["):
            cast("list[object]", row.setdefault(key, [])).append(value)
        elif after:
            row = cast("dict[str, object]", row.setdefault(key, {}))
        else:
            row[key] = value
