"""Search one candidate for each name: depth first, in the order of preference.

Arc consistency prunes after each choice, so that most branches end at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from imagegen.model.catalog import INTERPRETER
from imagegen.resolver.candidates import OS
from imagegen.resolver.memory import remembered
from imagegen.resolver.propagation import bits, open_domains

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

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
    """Find the best candidate for every name that is present; return None if nothing fits."""
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
