"""Resolve cells: find a release of every component, or the facts that collide, in words.

The search takes the newest candidate first, so the answer is the newest that fits, and the same
every time.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from imagegen.errors import ConfigError, Problem, ResolutionError
from imagegen.model import constraint
from imagegen.model.catalog import INTERPRETER
from imagegen.model.cell import Cell, Want
from imagegen.model.image import ImageSpec, Pin, name_problem
from imagegen.resolver.candidates import DRIVER, OS, Space
from imagegen.resolver.conflict import conflict_of
from imagegen.resolver.known_bad import known_bad_warnings
from imagegen.resolver.memory import remembered_of_rows
from imagegen.resolver.propagation import Descent, domains_of
from imagegen.resolver.refusal import THE_REQUEST
from imagegen.resolver.search import search
from imagegen.resolver.warnings import warnings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from imagegen.model.catalog import Catalog
    from imagegen.model.release import Release
    from imagegen.resolver.candidates import Edge
    from imagegen.resolver.propagation import Domains

SHOWN = ("device", "flavour")
"""Virtual names that are shown of an image even if no constraint names them."""


def space_of(catalog: Catalog, wants: Iterable[Want]) -> Space:
    """Return the candidates for these constraints, and for any part of them.

    Constraints that name the same drivers share one space: what it found out about its rows stays
    true.
    """
    drivers = {want.constraint for want in wants if want.component == DRIVER}
    return _shared_space(catalog, tuple(sorted(drivers)))


@lru_cache(maxsize=4)
def _shared_space(catalog: Catalog, drivers: tuple[str, ...]) -> Space:
    return Space(catalog, drivers)


def choose(domains: Domains, *, careful: bool = False) -> tuple[dict[str, Release], Domains] | None:
    """Choose a candidate for each name; return them with the domains, None if nothing fits."""
    chosen = search(domains, careful=careful)
    return None if chosen is None else (chosen, domains)


def constraints_of(cell: Cell) -> tuple[Want, ...]:
    """List what a cell wants, and what it keeps out (`none`), so that nothing else adds it."""
    source = cell.file or THE_REQUEST
    omitted = (Want(one.component, constraint.NONE, source) for one in cell.omitted)
    return (*cell.wants, *omitted)


def resolve_cell(cell: Cell, catalog: Catalog, space: Space | None = None) -> ImageSpec:
    """Pin every component of one request, with as few reservations as there may be.

    Raises ResolutionError with the facts that collide.
    """
    searched, wants = space or space_of(catalog, cell.wants), constraints_of(cell)
    domains = domains_of(searched, wants, allow_unknown=cell.allow_unknown)
    return _resolved(cell, wants, domains, careful=True)


def _resolved(
    cell: Cell, wants: Sequence[Want], domains: Domains, *, careful: bool = False
) -> ImageSpec:
    found, searched = choose(domains, careful=careful), domains.space
    if found is None:
        conflict = conflict_of(searched, wants, allow_unknown=cell.allow_unknown)
        risk = "; or take the risk: `allow_unknown: true`" if conflict.unknown else ""
        raise ResolutionError(
            Problem(
                f"cell `{cell.name}` cannot be resolved",
                file=cell.file,
                line=cell.line,
                evidence=(conflict.sentence, *conflict.lines()),
                hint=f"correct the matrix, or exclude this cell with a reason{risk}",
            )
        )
    return _spec(cell, found[0], found[1])


def _spec(cell: Cell, chosen: Mapping[str, Release], domains: Domains) -> ImageSpec:
    space = domains.space
    pins = _pins(cell.wants, chosen, domains)
    given = {
        name: row.version
        for name, row in sorted(chosen.items())
        if name not in pins and (name in SHOWN or name in domains.asked)
    }
    notes = warnings(chosen, space, allow_unknown=domains.choice.allow_unknown)
    notes += known_bad_warnings(chosen, space, cell.env)
    release = space.catalog.os[chosen[OS].version]
    own = tuple(pins[name] for name in sorted(pins) if name != OS)
    interpreter = space.catalog.with_role(INTERPRETER)
    spec = ImageSpec(cell, release, own, "", given, notes, interpreter)
    return replace(spec, tag=_tag(spec))


def _pins(wants: Sequence[Want], chosen: Mapping[str, Release], domains: Domains) -> dict[str, Pin]:
    """Map components and the OS to their pins, each with who asked for it."""
    via: dict[str, set[str]] = {name: set() for name in chosen}
    for want in wants:
        if want.constraint != constraint.NONE:
            via[want.component].add(want.asked_by)
    space = domains.space
    for name, row in chosen.items():
        for target in _asked_of(space, domains.edges[name][space.place(row)]):
            via[target].add(row.name)
    components = domains.space.catalog.components
    return {
        name: Pin(name, row, tuple(sorted(via[name])))
        for name, row in chosen.items()
        if name == OS or name in components
    }


@remembered_of_rows
def _asked_of(_: Space, edges: tuple[Edge, ...]) -> tuple[str, ...]:
    """List the names of which a candidate asks for something."""
    asked = (edge.target for edge in edges if edge.kind not in ("provides", "known_with"))
    return tuple(dict.fromkeys(asked))


def pin(wants: Sequence[Want], catalog: Catalog) -> dict[str, Pin]:
    """Map components (and `os`) to pins, for a set of constraints.

    Raises ResolutionError whose evidence is one line for each fact that collides.
    """
    space = space_of(catalog, wants)
    found = choose(domains_of(space, wants))
    if found is None:
        conflict = conflict_of(space, wants)
        raise ResolutionError.of(conflict.sentence, evidence=conflict.lines())
    return _pins(wants, *found)


def _tag(spec: ImageSpec) -> str:
    """Fill the tag template: an axis gives its value as asked, a component its version."""
    values: dict[str, str] = {one.component: one.version for one in spec.pins}
    values |= spec.given
    values |= {omission.component: constraint.NONE for omission in spec.cell.omitted}
    values |= spec.cell.values
    clean = {name: _clean(value) for name, value in values.items()}
    return spec.cell.tag.format_map(clean)


@lru_cache(maxsize=4096)
def _clean(value: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", value)


def resolve_cells(cells: Sequence[Cell], catalog: Catalog) -> tuple[ImageSpec, ...]:
    """Pin every component of all cells of a matrix.

    Raises ResolutionError with the conflicts of every cell, or ConfigError for two with one tag.
    """
    specs: list[ImageSpec] = []
    problems: list[Problem] = []
    space = space_of(catalog, (want for cell in cells for want in cell.wants))
    descent = Descent(space)
    for cell in cells:
        wants = constraints_of(cell)
        try:
            domains = descent.domains_of(wants, allow_unknown=cell.allow_unknown)
            specs.append(_resolved(cell, wants, domains))
        except ResolutionError as error:
            problems.extend(error.problems)
    if problems:
        raise ResolutionError(*problems)
    wrong = [*_no_tags(specs)] or [*_same_tags(specs)]
    if wrong:
        raise ConfigError(*wrong)
    return tuple(specs)


def _no_tags(specs: Sequence[ImageSpec]) -> Iterator[Problem]:
    """Report the tags that no image can have; the values of axes make them long."""
    for spec in specs:
        if why := name_problem(spec.tag):
            yield Problem(
                f"cell `{spec.cell.name}` cannot have its tag: {why}",
                file=spec.cell.file,
                line=spec.cell.line,
                key="tag",
                evidence=(f"it would be `{spec.tag}`",),
                hint="shorten or correct `tag`: it need not have every axis",
            )


def _same_tags(specs: Sequence[ImageSpec]) -> Iterator[Problem]:
    owner: dict[str, ImageSpec] = {}
    for spec in specs:
        first = owner.setdefault(spec.tag, spec)
        if first is not spec:
            yield Problem(
                f"cells `{first.cell.name}` and `{spec.cell.name}` have one tag",
                file=spec.cell.file,
                line=spec.cell.line,
                key="tag",
                evidence=(f"both would be `{spec.tag}`",),
                hint="name the axis that tells them apart in `tag`",
            )
