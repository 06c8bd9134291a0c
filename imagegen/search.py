"""One candidate for each name, found by resolvelib in what arc consistency has left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from resolvelib import AbstractProvider, BaseReporter, ResolutionImpossible, Resolver
from resolvelib.resolvers import ResolutionTooDeep

from imagegen.domains import bits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from imagegen.domains import Domains
    from imagegen.model import Release

FIRST = ("os", "torch", "tensorflow", "mxnet", "cuda", "python", "cudnn", "nccl")
"""The order in which the newest is taken: what is named first gets its newest first."""

MOST_ROUNDS = 20_000


@dataclass(frozen=True)
class Requirement:
    """A name and the candidates that may stand for it, as a set of bits."""

    name: str
    mask: int


@dataclass(frozen=True)
class Candidate:
    """A candidate by its name and its place there."""

    name: str
    index: int


class _Provider(AbstractProvider[Requirement, Candidate, str]):
    def __init__(self, domains: Domains) -> None:
        self._domains = domains

    def identify(self, requirement_or_candidate: Requirement | Candidate) -> str:
        return requirement_or_candidate.name

    def get_preference(
        self,
        identifier: str,
        resolutions: Mapping[str, Candidate],
        candidates: Mapping[str, Iterator[Candidate]],
        information: Mapping[str, Iterator[Any]],
        backtrack_causes: Sequence[Any],
    ) -> tuple[int, str]:
        del resolutions, candidates, information, backtrack_causes
        return (FIRST.index(identifier) if identifier in FIRST else len(FIRST), identifier)

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
        return [Requirement(edge.target, edge.mask) for edge in edges]


def search(domains: Domains) -> dict[str, Release] | None:
    """Name -> the candidate chosen, for every name that is present; None if nothing fits."""
    if domains.empty:
        return None
    asked = [Requirement(name, domains.left[name]) for name in sorted(domains.left)]
    resolver = Resolver(_Provider(domains), BaseReporter())
    try:
        found = resolver.resolve(asked, max_rounds=MOST_ROUNDS)
    except (ResolutionImpossible, ResolutionTooDeep):
        return None
    chosen = {name: candidate.index for name, candidate in found.mapping.items()}
    _prefer_fewer_warnings(domains, chosen)
    return {name: domains.space.candidates[name][index] for name, index in chosen.items()}


def _prefer_fewer_warnings(domains: Domains, chosen: dict[str, int]) -> None:
    """Of builds of one version, take the one that was made for what stands beside it."""
    for name in sorted(chosen):
        rows = domains.space.candidates[name]
        taken = rows[chosen[name]]
        best = (reservations(domains, taken, chosen), chosen[name])
        for index in bits(domains.left[name]) if best[0] else ():
            if rows[index].version == taken.version and _fits(domains, name, index, chosen):
                best = min(best, (reservations(domains, rows[index], chosen), index))
        chosen[name] = best[1]


def reservations(domains: Domains, row: Release, chosen: Mapping[str, int]) -> int:
    """How many of a row's `warns` do not hold beside what was chosen."""
    return sum(
        not domains.space.mask(name, wishes) >> chosen[name] & 1
        for name, wishes in row.warns.items()
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
