"""Find the rows of combinations that are known to fail which an answer matches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imagegen.model import constraint
from imagegen.resolver.memory import remembered, remembered_of_rows

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
    for row in _there(space, tuple(map(chosen.get, _names(space)))):
        if _has_packages(row, chosen) and not row.helped_by(env):
            yield row


@remembered
def _names(space: Space) -> tuple[str, ...]:
    """List the names that rows name, and the components that bring copies of these."""
    names = [name for row in space.catalog.known_bad for name in row.components]
    owners = [owner for name in names for owner, _ in space.catalog.copies.get(name, ())]
    return tuple(dict.fromkeys([*names, *owners]))


@remembered_of_rows
def _there(space: Space, rows: tuple[Release | None, ...]) -> tuple[KnownBad, ...]:
    """List the rows whose components are all among these candidates, one for each of `_names`."""
    chosen = {name: row for name, row in zip(_names(space), rows, strict=True) if row is not None}
    return tuple(
        bad
        for bad in space.catalog.known_bad
        if bad.components and all(_present(name, bad, chosen, space) for name in bad.components)
    )


def _has_packages(row: KnownBad, chosen: Mapping[str, Release]) -> bool:
    """Say whether an answer has the packages that a row names; those of wheels alone are known."""
    if not row.packages:
        return True
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
    found = [one.name] if one and space.mask(name, constraints) >> space.place(one) & 1 else []
    for owner, value in space.catalog.copies.get(name, ()):
        version = chosen[owner].provides.get(value, "") if owner in chosen else ""
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
