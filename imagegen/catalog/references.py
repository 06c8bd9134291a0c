"""Check that each component, OS and rule that the catalog's files name exists."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imagegen.catalog.rules import unknown_rules
from imagegen.config.document import near
from imagegen.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from imagegen.config.payload import Payload
    from imagegen.model.catalog import Catalog, Component

PROVIDED = ("glibc", "compiler", "driver")
"""Names that an OS provides, and the driver of a host, which only a request gives."""


def dangling_names(catalog: Catalog, files: Collection[str] = ()) -> list[Problem]:
    """Report the names that no component, OS or GPU has.

    `files` are the names of all their files: the catalog lacks those with errors of their own.
    """
    every = [*catalog.components.values(), *catalog.virtual.values()]
    known = {"os", *PROVIDED, *catalog.components, *catalog.virtual, *files}
    known |= {name for one in every for release in one.releases for name in release.provides}
    problems = [found for one in every for found in _of_component(one, known, catalog)]
    return [*problems, *unknown_rules(_texts(catalog), catalog.rules)]


def unknown_suites(components: Iterable[Component], payload: Payload) -> Iterator[Problem]:
    """Report each suite of a component that `validate` does not have."""
    for one in components:
        for suite in one.suites:
            file = f"validate/suites/test_{suite}.py"
            if payload.find(file) is None:
                text = f"names the suite `{suite}`, which does not exist"
                hint = f"write {file}, or correct the name"
                yield Problem(text, one.file, key="suites", hint=hint)


def _of_component(component: Component, known: set[str], catalog: Catalog) -> Iterator[Problem]:
    own = (*component.needs, *component.one_of, *component.request.gpu_libraries)
    parts = (*component.own_copies.values(), component.pip_pins)
    own += tuple(name for part in parts for name in part.of)
    asked = [(name, component.file, 0) for name in own]
    for release in component.releases:
        constraints = {**release.requires, **release.limits, **release.built_for}
        constraints |= {**release.known_with, **release.recommends}
        asked += [(name, release.file, release.line) for name in constraints]
        for os in constraints.get("os", ()):
            if os not in (*catalog.os, *known, "any", "none"):
                text = f"requires the OS `{os}`, which does not exist"
                yield Problem(text, file=release.file, line=release.line)
    for name, file, line in asked:
        if name not in known:
            text = f"names the component `{name}`, which does not exist"
            hint = near(name, sorted(known), "correct the name, or add the component")
            yield Problem(text, file=file, line=line, hint=hint)


def _texts(catalog: Catalog) -> Iterator[tuple[str, str, int]]:
    """List the texts that users read, with file and line."""
    for one in catalog.os.values():
        yield from ((note, one.file, 0) for note in one.notes)
    for component in (*catalog.components.values(), *catalog.virtual.values()):
        yield from ((text, component.file, 0) for text in component.rules.values())
        parts = (*component.own_copies.values(), component.pip_pins)
        yield from ((part.warning, component.file, 0) for part in parts)
        for row in component.releases:
            yield from ((note, row.file, row.line) for note in row.notes)
