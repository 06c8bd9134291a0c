"""Search one candidate for each name: depth first, in the order of preference.

Arc consistency prunes after each choice, so that most branches end at once. Combinations that are
known to fail are kept out of answers, where another answer fits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from imagegen.model.catalog import INTERPRETER
from imagegen.resolver.candidates import DRIVER, OS
from imagegen.resolver.known_bad import bad_rows
from imagegen.resolver.memory import remembered
from imagegen.resolver.propagation import bits, open_domains

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from imagegen.model.catalog import KnownBad
    from imagegen.model.release import Release
    from imagegen.resolver.candidates import Choice, Space
    from imagegen.resolver.propagation import Domains

LAST = 10**6
"""The place in the search of a name that has none."""


class _Wishes(NamedTuple):
    """What decided names recommend of open ones, and whether reservations count before versions."""

    decided: tuple[tuple[str, int], ...]
    careful: bool


class _Decision(NamedTuple):
    """A name to decide; `ranked` only narrows it to its best rank."""

    name: str
    ranked: bool = False


def search(domains: Domains, *, careful: bool = False) -> dict[str, Release] | None:
    """Find the best candidate for every name that is present; return None if nothing fits.

    The newest comes first, and of its builds the one with the fewest reservations. A `careful`
    search takes an older one if it has fewer of them. An answer that is known to fail is given only
    where there is no other.
    """
    chosen = _best(domains, careful)
    return None if chosen is None else _without_known_bad(domains, chosen, careful)


def _best(domains: Domains, careful: bool) -> dict[str, Release] | None:
    answer = best_answer(domains, careful=careful)
    if answer is None:
        return None
    return {name: domains.space.candidates[name][index] for name, index in answer.items()}


def best_answer(domains: Domains, *, careful: bool = False) -> dict[str, int] | None:
    """Map each name to the index of its best candidate; None if nothing fits.

    A name with one candidate left is decided: all that others have left accepts it.
    """
    if domains.empty:
        return None
    undecided = tuple((name, mask) for name, mask in domains.left.items() if mask & (mask - 1))
    wished = tuple(_wished(domains, [name for name, _ in undecided]))
    wishes = _Wishes(wished, careful)
    found = _of_open(domains.space, domains.choice, domains.present, undecided, wishes)
    if found is None:
        return None
    return {name: found.get(name, mask.bit_length() - 1) for name, mask in domains.left.items()}


def _wished(domains: Domains, undecided: Sequence[str]) -> Iterator[tuple[str, int]]:
    """List what decided names recommend of undecided ones, and which of these recommend them."""
    if not undecided:
        return
    space, open_ = domains.space, {*undecided}
    for name, mask in domains.left.items():
        decided = name not in open_
        for target, groups in _recommendations(space, name):
            if decided and target in open_:
                yield target, _recommended(groups, mask)
            elif not decided and target in domains.left and target not in open_:
                there = domains.left[target]
                yield name, ~_sum(rows for rows, accepted in groups if not accepted & there)


def _sum(masks: Iterable[int]) -> int:
    found = 0
    for mask in masks:
        found |= mask
    return found


def _recommended(groups: Iterable[tuple[int, int]], mask: int) -> int:
    """Return what some release of a set recommends; all, if one of them recommends nothing."""
    spoken, found = 0, 0
    for rows, accepted in groups:
        if rows & mask:
            spoken |= rows
            found |= accepted
    return -1 if mask & ~spoken else found


@remembered
def _of_open(
    space: Space,
    choice: Choice,
    present: frozenset[str],
    undecided: tuple[tuple[str, int], ...],
    wishes: _Wishes,
) -> dict[str, int] | None:
    """Decide the open names; many cells leave the same ones open."""
    if not undecided:
        return {}
    # An OS that has the interpreter comes before a newer OS that would need another source of it.
    first = _Decision(space.catalog.with_role(INTERPRETER), ranked=True)
    names = sorted((name for name, _ in undecided), key=lambda name: _turn(space, name))
    domains = open_domains(space, choice, present, undecided)
    return _walk(domains, [first, *map(_Decision, names)], wishes)


def _turn(space: Space, name: str) -> tuple[int, str]:
    """Make a key for the order in which names take their newest release, the lowest first."""
    return (0 if name == OS else space.catalog.search_order.get(name, LAST), name)


def _walk(
    domains: Domains, decisions: Sequence[_Decision], wishes: _Wishes
) -> dict[str, int] | None:
    if domains.empty:
        return None
    for at, decision in enumerate(decisions):
        mask = domains.left.get(decision.name, 0)
        if mask & (mask - 1):
            choices = _choices(domains, decision, wishes)
            tried = (domains.narrowed(decision.name, one) for one in choices)
            found = (_walk(one, decisions[at + 1 :], wishes) for one in tried)
            return next((one for one in found if one is not None), None)
    return {name: mask.bit_length() - 1 for name, mask in domains.left.items()}


def _choices(domains: Domains, decision: _Decision, wishes: _Wishes) -> Iterator[int]:
    """List the sets to narrow a name to, best first: one candidate, or all of one rank.

    What others have reservations about comes after what they have none about. Of one rank, or of
    one version, what has reservations itself comes last. Else it is the order of the candidates: by
    rank, the newest first.
    """
    name, mask = decision.name, domains.left[decision.name]
    rows = domains.space.candidates[name]
    if decision.ranked:
        by_rank: dict[int, int] = {}
        for index in bits(mask):
            by_rank[rows[index].rank] = by_rank.get(rows[index].rank, 0) | 1 << index
        yield from (by_rank[rank] for rank in sorted(by_rank))
        return
    others, own = _reservations(domains, name, wishes.decided)
    places = list(bits(mask))
    if others or own:
        builds = dict.fromkeys((rows[index].rank, rows[index].version) for index in places)
        newer = {build: at for at, build in enumerate(builds)}
        places.sort(
            key=lambda index: (
                _count(others, index),
                rows[index].rank,
                0 if wishes.careful else newer[rows[index].rank, rows[index].version],
                _count(own, index),
            )
        )
    yield from (1 << index for index in places)


def _count(masks: Sequence[int], index: int) -> int:
    return sum(not mask >> index & 1 for mask in masks)


def _reservations(
    domains: Domains, name: str, wished: Sequence[tuple[str, int]]
) -> tuple[list[int], list[int]]:
    """Return what others recommend of a name, and which of its candidates have no reservations."""
    space, left = domains.space, domains.left
    others = [mask for target, mask in wished if target == name]
    own = []
    for source in left:
        for target, groups in _recommendations(space, source):
            if source == name and target in left:
                own.append(~_sum(rows for rows, accepted in groups if not accepted & left[target]))
            elif target == name and source != name:
                others.append(_recommended(groups, left[source]))
    return [mask for mask in others if mask != -1], [mask for mask in own if mask != -1]


@remembered
def _recommendations(
    space: Space, name: str
) -> tuple[tuple[str, tuple[tuple[int, int], ...]], ...]:
    """List what the candidates of a name recommend of others: rows, and what they accept.

    A driver is what a machine has: no choice is made by it.
    """
    found: dict[str, dict[tuple[str, ...], int]] = {}
    for index, row in enumerate(space.candidates.get(name, ())):
        for target, texts in row.recommends.items():
            if target != DRIVER:
                groups = found.setdefault(target, {})
                groups[texts] = groups.get(texts, 0) | 1 << index
    return tuple(
        (target, tuple((rows, space.mask(target, texts)) for texts, rows in groups.items()))
        for target, groups in found.items()
    )


def _without_known_bad(
    domains: Domains, chosen: dict[str, Release], careful: bool
) -> dict[str, Release]:
    """Return the best answer that matches no row; where all do, the request asks for one."""
    tried: set[str] = set()
    while True:
        rows = bad_rows(chosen, domains.space)
        row = next((one for one in rows if one.name not in tried), None)
        if row is None:
            return chosen
        tried.add(row.name)
        chosen, domains = _other(row, domains, careful) or (chosen, domains)


def _other(
    row: KnownBad, domains: Domains, careful: bool
) -> tuple[dict[str, Release], Domains] | None:
    """Find the answer without one of what a row names, what it names first comes first."""
    for name, constraints in row.components.items():
        left = domains.left.get(name, 0) & ~domains.space.mask(name, constraints)
        narrowed = domains.narrowed(name, left) if left else None
        found = _best(narrowed, careful) if narrowed is not None else None
        if narrowed is not None and found is not None:
            return found, narrowed
    return None
