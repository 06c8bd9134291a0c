"""Expand a matrix into cells: the product of the axes, less the excludes, plus the includes."""

from __future__ import annotations

import itertools
import re
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING

from imagegen.matrix.document import omissions, wanted
from imagegen.model import constraint
from imagegen.model.cell import Cell, Omission, User, Want, budget_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from imagegen.matrix.document import MatrixDocument, WantData


def points(axes: Mapping[str, Sequence[str]]) -> Iterator[dict[str, str]]:
    """Combine the values of the axes in every way; the last axis changes fastest."""
    for values in itertools.product(*axes.values()):
        yield dict(zip(axes, values, strict=True))


def cell_count(document: MatrixDocument) -> int:
    """Count the cells of a matrix without making them; excluded ones count, too."""
    axes = document.data["axes"]
    return prod(map(len, axes.values())) + len(document.data.get("include", []))


def covers(row: Mapping[str, str], point: Mapping[str, str]) -> bool:
    """Say whether a point has every value that an exclude, or the `when` of an omission, names."""
    return all(point.get(axis) == value for axis, value in row.items() if axis != "reason")


def expand(document: MatrixDocument) -> Iterator[Cell]:
    """Make the cells of a matrix, in the order of the axes and their values, includes last."""
    for point, path in _placed(document):
        tag = point.pop("tag", document.data["tag"])
        yield _cell(document, point, tag, path)


def cell_names(document: MatrixDocument) -> Iterator[tuple[str, list[str | int]]]:
    """Name each cell, and say where in the document it comes from."""
    for point, path in _placed(document):
        point.pop("tag", None)
        yield _name(point), path


def _placed(document: MatrixDocument) -> Iterator[tuple[dict[str, str], list[str | int]]]:
    data = document.data
    axes: list[str | int] = ["axes"]
    for point in points(data["axes"]):
        if not any(covers(row, point) for row in data.get("exclude", [])):
            yield point, axes
    for index, row in enumerate(data.get("include", [])):
        yield {**data.get("defaults", {}), **row}, ["include", index]


def _cell(
    document: MatrixDocument, point: Mapping[str, str], tag: str, path: Sequence[str | int]
) -> Cell:
    data = document.data
    constraints: dict[str, str | WantData] = {**data["components"], **point}
    omitted, wants = [], []
    for name, each in constraints.items():
        reason, value = _omission(each, point), wanted(each)
        if reason:
            omitted.append(Omission(name, reason))
        elif value == constraint.NONE:
            omitted.append(Omission(name, f"`{name}: none` in matrix {data['name']}"))
        else:
            section = "axis" if name in point else "components"
            wants.append(Want(name, value, f"{document.file}, {section} `{name}`"))
    return Cell(
        matrix=data["name"],
        name=_name(point),
        values=dict(point),
        wants=tuple(wants),
        omitted=tuple(omitted),
        tag=tag,
        profile=data.get("profile", "plain"),
        base=data.get("base", "auto"),
        file=document.file,
        line=document.line(path),
        allow_unknown=data.get("allow_unknown", False),
        env=dict(sorted(data.get("env", {}).items())),
        notes=tuple(data.get("notes", ())),
        size_budget=budget_of(data.get("size_budget")),
        user=User(row["name"], int(row["uid"])) if (row := data.get("user")) else None,
    )


def _name(point: Mapping[str, str]) -> str:
    return "-".join(map(_plain, point.values()))


@lru_cache(maxsize=4096)
def _plain(value: str) -> str:
    return re.sub(r"[^A-Za-z0-9._+-]+", "_", value)


def _omission(want: str | WantData, point: Mapping[str, str]) -> str:
    """Find the reason why a cell does not have a component; empty if it has it."""
    reasons = (rule["reason"] for rule in omissions(want) if covers(rule["when"], point))
    return next(reasons, "")
