"""Keep combinations that are known to fail out of answers, where another answer fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imagegen.model import constraint
from imagegen.resolver.search import search

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from imagegen.model.catalog import KnownBad
    from imagegen.model.release import Release
    from imagegen.resolver.candidates import Space
    from imagegen.resolver.propagation import Domains

NO_ENV: Mapping[str, str] = {}


def bad_rows(
    chosen: Mapping[str, Release], space: Space, env: Mapping[str, str] = NO_ENV
) -> Iterator[KnownBad]:
    """List the rows that an answer matches: all that a row names is in it."""
    for row in space.catalog.known_bad:
        if row.components and _matches(row, chosen, space) and not row.helped_by(env):
            yield row


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
    for owner in chosen.values():
        component = space.catalog.components.get(owner.component)
        for value, copy in component.own_copies.items() if component else ():
            version = owner.provides.get(value, "").removesuffix("?")
            if name in copy.of and any(_in_range(text, version) for text in constraints):
                found.append(f"{name} {version} in {owner.name}")
    return found


def _in_range(wanted: str, version: str) -> bool:
    return constraint.is_version(version) and constraint.matches(wanted, version)


def without_known_bad(
    domains: Domains, chosen: dict[str, Release]
) -> tuple[dict[str, Release], Domains]:
    """Return the best answer that matches no row; where all do, the request asks for one."""
    tried: set[str] = set()
    while True:
        rows = bad_rows(chosen, domains.space)
        row = next((one for one in rows if one.name not in tried), None)
        if row is None:
            return chosen, domains
        tried.add(row.name)
        chosen, domains = _other(row, domains) or (chosen, domains)


def _other(row: KnownBad, domains: Domains) -> tuple[dict[str, Release], Domains] | None:
    """Find the answer without one of what a row names, what it names first comes first."""
    for name, constraints in row.components.items():
        left = domains.left.get(name, 0) & ~domains.space.mask(name, constraints)
        narrowed = domains.narrowed(name, left) if left else None
        found = search(narrowed) if narrowed is not None else None
        if narrowed is not None and found is not None:
            return found, narrowed
    return None


def known_bad_warnings(
    chosen: Mapping[str, Release], space: Space, env: Mapping[str, str]
) -> tuple[str, ...]:
    """Warn about each row that an answer matches, with its workaround."""
    return tuple(
        f"{' with '.join(_present(name, row, chosen, space)[0] for name in row.components)}"
        f": {row.text}"
        for row in bad_rows(chosen, space, env)
    )
