"""Check in a matrix what its schema cannot express: names, values, excludes, the tag."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from string import Formatter
from typing import TYPE_CHECKING

from imagegen.catalog.rules import unknown_rules
from imagegen.config.document import dotted
from imagegen.errors import Problem
from imagegen.matrix.cells import cell_count, cell_names, covers, points
from imagegen.matrix.document import omissions, wanted
from imagegen.matrix.user_checks import check_user
from imagegen.model import constraint
from imagegen.text import FEW, few, few_like

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from imagegen.matrix.document import MatrixDocument
    from imagegen.model.catalog import Catalog, Component


MOST_CELLS = 50_000
"""The most cells of a matrix: so many are resolved within seconds."""


def check(document: MatrixDocument, catalog: Catalog) -> Iterator[Problem]:
    """Report every problem of a document that its schema accepts; too many cells come alone."""
    data = document.data
    if (count := cell_count(document)) > MOST_CELLS:
        yield _too_many(document, count)
        return
    if Path(document.file).stem != data["name"]:
        yield _problem(
            document,
            ["name"],
            f"`{data['name']}` is not the name of its file",
            hint=f"rename the file to `{data['name']}.yaml`, or correct `name`",
        )
    yield from _check_names(document, catalog)
    yield from _check_placeholders(document)
    yield from _check_excludes(document)
    yield from _check_same_names(document)
    yield from check_user(document)
    for index, note in enumerate(data.get("notes", ())):
        path: list[str | int] = ["notes", index]
        named = [(note, document.file, document.line(path))]
        yield from (replace(one, key=dotted(path)) for one in unknown_rules(named, catalog.rules))


def _too_many(document: MatrixDocument, count: int) -> Problem:
    sizes = " x ".join(f"{name} {len(values)}" for name, values in document.data["axes"].items())
    return _problem(
        document,
        ["axes"],
        f"{count} cells are too many; a matrix has at most {MOST_CELLS}, before excludes",
        evidence=[f"{sizes}, and {len(document.data.get('include', []))} by `include`"],
        hint="name the combinations that are needed under `include`, or make several matrices",
    )


def _problem(
    document: MatrixDocument,
    path: Sequence[str | int],
    text: str,
    *,
    evidence: Sequence[str] = (),
    hint: str = "",
) -> Problem:
    key = dotted(path)
    return Problem(text, document.file, document.line(path), key, tuple(evidence), hint)


def _check_names(document: MatrixDocument, catalog: Catalog) -> Iterator[Problem]:
    """Check every axis, component and value against the catalog."""
    data = document.data
    defaults = data.get("defaults", {})
    sections = {"axes": data["axes"], "components": data["components"], "defaults": defaults}
    for section, names in sections.items():
        for name in names:
            if not _known(name, catalog):
                yield _unknown_name(document, [section, name], name, catalog, section)
    for axis, values in data["axes"].items():
        for index, value in enumerate(values):
            yield from _check_value(document, ["axes", axis, index], axis, value, catalog)
    for name, want in data["components"].items():
        yield from _check_value(document, ["components", name], name, wanted(want), catalog)
    for name, value in defaults.items():
        yield from _check_value(document, ["defaults", name], name, value, catalog)
    yield from _check_rows(document, catalog)
    yield from _check_omissions(document)


def _check_rows(document: MatrixDocument, catalog: Catalog) -> Iterator[Problem]:
    data = document.data
    sections = {"include": data.get("include", []), "exclude": data.get("exclude", [])}
    for section, rows in sections.items():
        extra = {"reason"} if section == "exclude" else {"tag"}
        for index, row in enumerate(rows):
            for name, value in row.items():
                path: list[str | int] = [section, index, name]
                if name in extra:
                    continue
                if section == "exclude" and name not in data["axes"]:
                    yield _unknown_axis(document, path, name, data["axes"])
                elif not _known(name, catalog):
                    yield _unknown_name(document, path, name, catalog, section)
                else:
                    yield from _check_value(document, path, name, value, catalog)


def _known(name: str, catalog: Catalog) -> bool:
    """Say whether cells may use a name: an OS, a component, a virtual name, a part of a wheel."""
    if name in ("os", "driver", *catalog.components, *catalog.virtual):
        return True
    every = (release for one in catalog.components.values() for release in one.releases)
    return any(name in release.provides for release in every)


def _check_omissions(document: MatrixDocument) -> Iterator[Problem]:
    data = document.data
    for name, want in data["components"].items():
        for index, rule in enumerate(omissions(want)):
            path: list[str | int] = ["components", name, "omit", index, "when"]
            unknown = [axis for axis in rule["when"] if axis not in data["axes"]]
            for axis in unknown:
                yield _unknown_axis(document, [*path, axis], axis, data["axes"])
            if not unknown and not any(
                covers(rule["when"], point) for point in points(data["axes"])
            ):
                text = "this condition holds for no cell"
                yield _problem(document, path, text, hint="remove it, or correct its values")


def _unknown_axis(
    document: MatrixDocument, path: Sequence[str | int], name: str, axes: Mapping[str, object]
) -> Problem:
    near = get_close_matches(name, axes, 1)
    return _problem(
        document,
        path,
        f"`{name}` is no axis of this matrix",
        evidence=[f"axes: {', '.join(axes)}"],
        hint=f"did you mean `{near[0]}`?" if near else "exclude cells by their axes",
    )


def _unknown_name(
    document: MatrixDocument, path: Sequence[str | int], name: str, catalog: Catalog, section: str
) -> Problem:
    known = ["os", *sorted(catalog.components)]
    near = get_close_matches(name, known, 1)
    what = "axis" if section == "axes" else "component"
    return _problem(
        document,
        path,
        f"{what} `{name}` is neither `os` nor a component of the catalog",
        evidence=[f"known: {few_like(name, known, 'imagegen catalog')}"],
        hint=f"did you mean `{near[0]}`?"
        if near
        else f"add dockerfiles/components/{name}/component.yaml, or correct the name",
    )


def _check_value(
    document: MatrixDocument, path: Sequence[str | int], name: str, value: str, catalog: Catalog
) -> Iterator[Problem]:
    if name == "os":
        if value not in catalog.os:
            near = get_close_matches(value, catalog.os, 1)
            yield _problem(
                document,
                path,
                f"`{value}` is not an OS of the catalog",
                evidence=[f"known: {few_like(value, sorted(catalog.os), 'imagegen catalog os')}"],
                hint=f"did you mean `{near[0]}`?"
                if near
                else f"add dockerfiles/os/{value}.yaml, or correct the value",
            )
        return
    component = catalog.components.get(name)
    problem = value_problem(component, value) if component else None
    if problem:
        text, evidence, hint = problem
        yield _problem(document, path, text, evidence=evidence, hint=hint)


def value_problem(component: Component, value: str) -> tuple[str, list[str], str] | None:
    """Say why no release of a component satisfies a value, as text, evidence and hint.

    The result is None if a release satisfies it.
    """
    why = constraint.problem_with(value)
    if why:
        return f"`{value}` {why}", [f"for component `{component.name}`"], "correct the value"
    if value in (constraint.ANY, constraint.NONE):
        return None
    meant = component.aliases.get(value, value)
    if any(constraint.matches(meant, r.version, r.variant) for r in component.releases):
        return None
    if constraint.is_version(value) and any(
        constraint.matches(value, other) for r in component.releases for other in r.aliases
    ):
        return None
    known = sorted({r.version for r in component.releases}, key=constraint.version_key)
    command = f"imagegen catalog {component.name}"
    around = constraint.nearest(value, known, FEW)
    evidence = [f"known releases: {few(known, around, command)}"]
    if component.variants and not constraint.is_version(value):
        evidence.append(f"known variants: {few_like(value, component.variants, command)}")
    alike = [] if constraint.is_version(value) else [*component.variants, *known]
    near = get_close_matches(value, alike, 1)
    rows = component.releases[-1].row.rpartition(":")[0] if component.releases else component.file
    hint = f"did you mean `{near[0]}`?" if near else f"add a release to {rows}"
    return f"`{value}` is not a release of component `{component.name}`", evidence, hint


def _check_placeholders(document: MatrixDocument) -> Iterator[Problem]:
    """Check the placeholders of all tags; an include fills its tag from its own row."""
    data = document.data
    wrong = list(_unfilled(document, ["tag"], data["tag"], {**data["axes"], **data["components"]}))
    yield from wrong
    for index, row in enumerate(data.get("include", [])):
        known = {**data["components"], **data.get("defaults", {}), **row}
        known.pop("tag", None)
        own_tag = row.get("tag")
        if own_tag is not None:
            yield from _unfilled(document, ["include", index, "tag"], own_tag, known)
        elif not wrong:
            yield from _unfilled(document, ["include", index], data["tag"], known)


def _unfilled(
    document: MatrixDocument, path: Sequence[str | int], tag: str, known: Mapping[str, object]
) -> Iterator[Problem]:
    try:
        asked = [field for _, field, _, _ in Formatter().parse(tag) if field is not None]
    except ValueError:
        yield _problem(document, path, "braces do not match", hint="write `{axis}`")
        return
    for field in asked:
        if field not in known:
            near = get_close_matches(field, known, 1)
            yield _problem(
                document,
                path,
                f"`{{{field}}}` is neither an axis nor a component here",
                evidence=[f"known: {', '.join(known)}"],
                hint=f"did you mean `{{{near[0]}}}`?" if near else "correct the placeholder",
            )


def _check_excludes(document: MatrixDocument) -> Iterator[Problem]:
    data = document.data
    every = list(points(data["axes"]))
    for index, row in enumerate(data.get("exclude", [])):
        known = set(row) - {"reason"} <= set(data["axes"])
        if known and not any(covers(row, point) for point in every):
            yield _problem(
                document,
                ["exclude", index],
                "this exclude matches no cell",
                evidence=[f"{axis}: {', '.join(v)}" for axis, v in data["axes"].items()],
                hint="remove it, or correct its values",
            )
    if next(cell_names(document), None) is None:
        yield _problem(
            document,
            ["exclude"],
            "the excludes leave no cell of this matrix",
            hint="remove one of them, or add an `include`",
        )


def _check_same_names(document: MatrixDocument) -> Iterator[Problem]:
    seen: set[str] = set()
    for name, path in cell_names(document):
        if name in seen:
            yield Problem(
                f"two cells are named `{name}`",
                document.file,
                document.line(path),
                hint="remove the value or the include that repeats another",
            )
        seen.add(name)
