"""Search one candidate for each name: depth first, in the order of preference.

Arc consistency prunes after each choice, so that most branches end at once. Combinations that are
known to fail are kept out of answers, where another answer fits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from imagegen.model import constraint
from imagegen.model.catalog import INTERPRETER
from imagegen.resolver.candidates import OS
from imagegen.resolver.memory import remembered
from imagegen.resolver.propagation import bits, open_domains

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from imagegen.model.catalog import KnownBad
    from imagegen.model.release import Release
    from imagegen.resolver.candidates import Choice, Space
    from imagegen.resolver.propagation import Domains

LAST = 10**6
"""The place in the search of a name that has none."""


class _Decision(NamedTuple):
    """A name to decide; `ranked` only narrows it to its best rank."""

    name: str
    ranked: bool = False


def search(domains: Domains) -> dict[str, Release] | None:
    """Find the best candidate for every name that is present; return None if nothing fits.

    An answer that is known to fail is given only where there is no other.
    """
    chosen = _best(domains)
    return None if chosen is None else _without_known_bad(domains, chosen)


def _best(domains: Domains) -> dict[str, Release] | None:
    answer = best_answer(domains)
    if answer is None:
        return None
    _prefer_fewer_warnings(domains, answer)
    return {name: domains.space.candidates[name][index] for name, index in answer.items()}


def best_answer(domains: Domains) -> dict[str, int] | None:
    """Map each name to the index of its best candidate; None if nothing fits.

    A name with one candidate left is decided: all that others have left accepts it.
    """
    if domains.empty:
        return None
    undecided = tuple((name, mask) for name, mask in domains.left.items() if mask & (mask - 1))
    found = _of_open(domains.space, domains.choice, domains.present, undecided)
    if found is None:
        return None
    return {name: found.get(name, mask.bit_length() - 1) for name, mask in domains.left.items()}


@remembered
def _of_open(
    space: Space,
    choice: Choice,
    present: frozenset[str],
    undecided: tuple[tuple[str, int], ...],
) -> dict[str, int] | None:
    """Decide the open names; many cells leave the same ones open."""
    if not undecided:
        return {}
    # An OS that has the interpreter comes before a newer OS that would need another source of it.
    first = _Decision(space.catalog.with_role(INTERPRETER), ranked=True)
    names = sorted((name for name, _ in undecided), key=lambda name: _turn(space, name))
    return _walk(open_domains(space, choice, present, undecided), [first, *map(_Decision, names)])


def _turn(space: Space, name: str) -> tuple[int, str]:
    """Make a key for the order in which names take their newest release, the lowest first."""
    return (0 if name == OS else space.catalog.search_order.get(name, LAST), name)


def _walk(domains: Domains, decisions: Sequence[_Decision]) -> dict[str, int] | None:
    if domains.empty:
        return None
    for at, decision in enumerate(decisions):
        mask = domains.left.get(decision.name, 0)
        if mask & (mask - 1):
            tried = (domains.narrowed(decision.name, one) for one in _choices(domains, decision))
            found = (_walk(one, decisions[at + 1 :]) for one in tried)
            return next((one for one in found if one is not None), None)
    return {name: mask.bit_length() - 1 for name, mask in domains.left.items()}


def _choices(domains: Domains, decision: _Decision) -> Iterator[int]:
    """List the sets to narrow a name to, best first: one candidate, or all of one rank."""
    mask = domains.left[decision.name]
    if not decision.ranked:
        yield from (1 << index for index in bits(mask))
        return
    rows = domains.space.candidates[decision.name]
    by_rank: dict[int, int] = {}
    for index in bits(mask):
        by_rank[rows[index].rank] = by_rank.get(rows[index].rank, 0) | 1 << index
    yield from (by_rank[rank] for rank in sorted(by_rank))


def _prefer_fewer_warnings(domains: Domains, chosen: dict[str, int]) -> None:
    """Take, of builds of one version, the one that was made for the rest of the image."""
    for name in sorted(chosen):
        rows = domains.space.candidates[name]
        taken = rows[chosen[name]]
        if not taken.recommends:
            continue
        best = (reservations(domains, taken, chosen), chosen[name])
        for index in bits(domains.left[name]) if best[0] else ():
            same = rows[index].version == taken.version and rows[index].rank == taken.rank
            if same and _fits(domains, name, index, chosen):
                best = min(best, (reservations(domains, rows[index], chosen), index))
        chosen[name] = best[1]


def reservations(domains: Domains, row: Release, chosen: Mapping[str, int]) -> int:
    """Count the `recommends` of a row that do not hold with what was chosen."""
    return sum(
        not domains.space.mask(name, constraints) >> chosen[name] & 1
        for name, constraints in row.recommends.items()
        if name in chosen
    )


def _fits(domains: Domains, name: str, index: int, chosen: Mapping[str, int]) -> bool:
    own = domains.edges[name][index]
    if any(not edge.mask >> chosen[edge.target] & 1 for edge in own if edge.target != name):
        return False
    return all(
        edge.mask >> index & 1
        for other, place in chosen.items()
        if other != name
        for edge in domains.edges[other][place]
        if edge.target == name
    )


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


def _without_known_bad(domains: Domains, chosen: dict[str, Release]) -> dict[str, Release]:
    """Return the best answer that matches no row; where all do, the request asks for one."""
    tried: set[str] = set()
    while True:
        rows = bad_rows(chosen, domains.space)
        row = next((one for one in rows if one.name not in tried), None)
        if row is None:
            return chosen
        tried.add(row.name)
        chosen, domains = _other(row, domains) or (chosen, domains)


def _other(row: KnownBad, domains: Domains) -> tuple[dict[str, Release], Domains] | None:
    """Find the answer without one of what a row names, what it names first comes first."""
    for name, constraints in row.components.items():
        left = domains.left.get(name, 0) & ~domains.space.mask(name, constraints)
        narrowed = domains.narrowed(name, left) if left else None
        found = _best(narrowed) if narrowed is not None else None
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
