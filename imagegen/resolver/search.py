"""Search one candidate for each name with resolvelib, in what arc consistency has left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from resolvelib import AbstractProvider, BaseReporter, ResolutionImpossible, Resolver
from resolvelib.resolvers import ResolutionTooDeep

from imagegen.model.catalog import INTERPRETER
from imagegen.resolver.candidates import OS
from imagegen.resolver.propagation import bits

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from resolvelib.structs import RequirementInformation

    from imagegen.model.release import Release
    from imagegen.resolver.propagation import Domains

    _Information = RequirementInformation["Requirement", "Candidate"]

LAST = 10**6
"""The place in the search of a name that has none."""

MOST_ROUNDS = 20_000


@dataclass(frozen=True)
class Requirement:
    """A name and the candidates that are accepted for it, as a set of bits."""

    name: str
    mask: int


@dataclass(frozen=True)
class Candidate:
    """A candidate, as the index in the candidates of its name."""

    name: str
    index: int


class _Provider(AbstractProvider[Requirement, Candidate, str]):
    def __init__(self, domains: Domains, decided: Collection[str]) -> None:
        self._domains = domains
        self._decided = decided

    def identify(self, requirement_or_candidate: Requirement | Candidate) -> str:
        return requirement_or_candidate.name

    def get_preference(
        self,
        identifier: str,
        resolutions: Mapping[str, Candidate],
        candidates: Mapping[str, Iterator[Candidate]],
        information: Mapping[str, Iterator[_Information]],
        backtrack_causes: Sequence[_Information],
    ) -> tuple[int, str]:
        del resolutions, candidates, information, backtrack_causes
        return _turn(self._domains, identifier)

    def find_matches(
        self,
        identifier: str,
        requirements: Mapping[str, Iterator[Requirement]],
        incompatibilities: Mapping[str, Iterator[Candidate]],
    ) -> Iterable[Candidate]:
        mask = self._domains.left[identifier]
        for requirement in requirements[identifier]:
            mask &= requirement.mask
        for refused in incompatibilities[identifier]:
            mask &= ~(1 << refused.index)
        return [Candidate(identifier, index) for index in bits(mask)]

    def is_satisfied_by(self, requirement: Requirement, candidate: Candidate) -> bool:
        return bool(requirement.mask >> candidate.index & 1)

    def get_dependencies(self, candidate: Candidate) -> Iterable[Requirement]:
        edges = self._domains.edges[candidate.name][candidate.index]
        return [
            Requirement(edge.target, edge.mask)
            for edge in edges
            if edge.target not in self._decided
        ]


def search(domains: Domains) -> dict[str, Release] | None:
    """Find the best candidate for every name that is present; return None if nothing fits.

    The names are decided one after the other, each for the newest with which the rest still fits.
    This narrows the domains to the answer. Many cells may leave the same names open: these are
    searched once.
    """
    if domains.empty:
        return None
    undecided = tuple((name, mask) for name, mask in domains.left.items() if mask & (mask - 1))
    key = (domains.choice, domains.present, undecided)
    answers = domains.space.answers
    if key not in answers:
        answers[key] = _settled(domains, [name for name, _ in undecided])
    answer = answers[key]
    if answer is None:
        return None
    domains.left.update(answer)
    found = {name: mask.bit_length() - 1 for name, mask in domains.left.items()}
    _prefer_fewer_warnings(domains, found)
    return {name: domains.space.candidates[name][index] for name, index in found.items()}


def _settled(domains: Domains, undecided: Sequence[str]) -> dict[str, int] | None:
    """Decide the undecided names; each becomes a set of one."""
    found = any_answer(domains)
    if found is None:
        return None
    # An OS that has the interpreter comes before a newer OS that would need another source of it.
    interpreter = domains.space.catalog.with_role(INTERPRETER)
    found = _settle(domains, interpreter, found, ranked=True)
    for name in sorted(undecided, key=lambda name: _turn(domains, name)):
        found = _settle(domains, name, found)
    return {name: domains.left[name] for name in undecided}


def _turn(domains: Domains, name: str) -> tuple[int, str]:
    """Make a key for the order in which names take their newest release, the lowest first."""
    order = domains.space.catalog.search_order
    return (0 if name == OS else order.get(name, LAST), name)


def any_answer(domains: Domains) -> dict[str, int] | None:
    """Map names to the indices of some answer, not of the best one; None if nothing fits.

    A name with one candidate left is decided: all that others have left accepts it.
    """
    if domains.empty:
        return None
    decided = {n: m.bit_length() - 1 for n, m in domains.left.items() if not m & (m - 1)}
    asked = [Requirement(n, domains.left[n]) for n in sorted(domains.left) if n not in decided]
    if not asked:
        return decided
    resolver = Resolver(_Provider(domains, decided), BaseReporter())
    try:
        found = resolver.resolve(asked, max_rounds=MOST_ROUNDS)
    except (ResolutionImpossible, ResolutionTooDeep):
        return None
    return {**decided, **{name: candidate.index for name, candidate in found.mapping.items()}}


def _settle(
    domains: Domains, name: str, found: dict[str, int], *, ranked: bool = False
) -> dict[str, int]:
    """Narrow a name to its best candidate (`ranked`: its best rank) that lets the rest fit."""
    mask = domains.left.get(name, 0)
    if not mask & (mask - 1):
        return found
    for choice in _by_rank(domains, name) if ranked else (1 << index for index in bits(mask)):
        if found[name] in bits(choice):
            narrowed, answer = domains.narrowed(name, choice), found
        else:
            narrowed = domains.narrowed(name, choice)
            again = any_answer(narrowed)
            if again is None:
                continue
            answer = again
        domains.left = narrowed.left
        return answer
    return found


def _by_rank(domains: Domains, name: str) -> list[int]:
    by_rank: dict[int, int] = {}
    for index in bits(domains.left.get(name, 0)):
        rank = domains.space.candidates[name][index].rank
        by_rank[rank] = by_rank.get(rank, 0) | 1 << index
    return [by_rank[rank] for rank in sorted(by_rank)]


def _prefer_fewer_warnings(domains: Domains, chosen: dict[str, int]) -> None:
    """Take, of builds of one version, the one that was made for the rest of the image."""
    for name in sorted(chosen):
        rows = domains.space.candidates[name]
        taken = rows[chosen[name]]
        if not taken.recommends:
            continue
        best = (reservations(domains, taken, chosen), chosen[name])
        for index in bits(domains.start[name]) if best[0] else ():
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
