"""Find the rows of combinations that are known to fail which an answer matches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imagegen.model import constraint
from imagegen.resolver.memory import remembered

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from imagegen.model.catalog import KnownBad
    from imagegen.model.release import Release
    from imagegen.resolver.candidates import Space

NO_ENV: Mapping[str, str] = {}


def bad_rows(
    chosen: Mapping[str, Release], space: Space, env: Mapping[str, str] = NO_ENV
) -> Iterator[KnownBad]:
    """List the rows that an answer matches: all that a row names is in it."""
    for name in _named_first(space):
        one = chosen.get(name)
        for row in _rows_of(space, name, space.place(name, one)) if one else ():
            if _matches(row, chosen, space) and not row.helped_by(env):
                yield row


@remembered
def _named_first(space: Space) -> tuple[str, ...]:
    """List the names that rows name first, and the components that bring copies of these."""
    first = [next(iter(row.components)) for row in space.catalog.known_bad if row.components]
    owners = [owner for name in first for owner, _ in space.catalog.copies.get(name, ())]
    return tuple(dict.fromkeys([*first, *owners]))


@remembered
def _rows_of(space: Space, name: str, place: int) -> tuple[KnownBad, ...]:
    """List the rows of which a candidate is what they name first, or brings a copy of it."""
    alone = {name: space.candidates[name][place]}
    return tuple(
        row
        for row in space.catalog.known_bad
        if row.components and _present(next(iter(row.components)), row, alone, space)
    )


def _matches(row: KnownBad, chosen: Mapping[str, Release], space: Space) -> bool:
    there = all(_present(name, row, chosen, space) for name in row.components)
    if not there or not row.packages:
        return there
    wheels = {name: version for one in chosen.values() for name, version in one.wheels.items()}
    if set(row.packages) != {"wheel"}:
        return False
    return all(
        name in wheels and _in_range(constraint, wheels[name])
        for name, constraint in row.packages["wheel"].items()
    )


def _present(name: str, row: KnownBad, chosen: Mapping[str, Release], space: Space) -> list[str]:
    """Name what of an answer a row means by a name: the component, or copies of it in others.

    The NCCL in a wheel of torch is such a copy (`own_copies`).
    """
    constraints, one = row.components[name], chosen.get(name)
    found = (
        [one.name] if one and space.mask(name, constraints) >> space.place(name, one) & 1 else []
    )
    for owner, value in space.catalog.copies.get(name, ()):
        version = chosen[owner].provides.get(value, "").removesuffix("?") if owner in chosen else ""
        if version and any(_in_range(text, version) for text in constraints):
            found.append(f"{name} {version} in {chosen[owner].name}")
    return found


def _in_range(wanted: str, version: str) -> bool:
    return constraint.is_version(version) and constraint.matches(wanted, version)


def known_bad_warnings(
    chosen: Mapping[str, Release], space: Space, env: Mapping[str, str]
) -> tuple[str, ...]:
    """Warn about each row that an answer matches, with its workaround."""
    return tuple(
        f"{' with '.join(_present(name, row, chosen, space)[0] for name in row.components)}"
        f": {row.text}"
        for row in bad_rows(chosen, space, env)
    )
