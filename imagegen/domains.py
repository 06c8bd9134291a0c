"""What is left to choose from under a set of wishes, before any search.

Arc consistency: a candidate goes when some name that it speaks of has nothing left that it admits,
and when no candidate of some other name admits it. Most conflicts show here, and what is left is
all but searched.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from imagegen.constraint import NONE
from imagegen.space import OS, Choice, Edge

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from imagegen.model import Release, Want
    from imagegen.space import Space


@dataclass
class Domains:
    """For each name that is present: the candidates left (as a set of bits) and their edges."""

    space: Space
    choice: Choice
    present: frozenset[str]
    asked: Mapping[str, int]
    left: dict[str, int] = field(default_factory=dict)
    start: Mapping[str, int] = field(default_factory=dict)
    touching: dict[str, set[str]] = field(default_factory=dict)
    edges: dict[str, dict[int, tuple[Edge, ...]]] = field(default_factory=dict)

    def rows(self, name: str, mask: int | None = None) -> list[Release]:
        """The candidates of a name in a set, by default those left, best first."""
        chosen = self.left[name] if mask is None else mask
        return [self.space.candidates[name][index] for index in bits(chosen)]

    def narrowed(self, name: str, mask: int) -> Domains:
        """The same with a name narrowed to a set, and pruned again."""
        other = replace(self, left={**self.left, name: mask})
        prune(other, [name])
        return other

    @property
    def empty(self) -> bool:
        return any(not mask for mask in self.left.values())


def bits(mask: int) -> Iterator[int]:
    """The positions of the ones, lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def domains_of(space: Space, wants: Sequence[Want], *, allow_unknown: bool = False) -> Domains:
    """The names that wishes bring into an image and what is left of each, pruned."""
    choice = Choice(
        frozenset(want.component for want in wants if "+" in want.constraint), allow_unknown
    )
    asked = _asked(space, wants)
    present = _present(space, asked, {w.component for w in wants if w.constraint != NONE})
    domains = Domains(space, choice, present, asked)
    for name in present:
        everything = space.every(name) & ~space.hidden(name)
        domains.left[name] = asked.get(name, everything)
    for name in present:
        domains.edges[name] = {
            index: space.statements(name, index, present, choice)
            for index in bits(domains.left[name])
        }
    prune(domains, sorted(domains.left))
    domains.start = dict(domains.left)
    return domains


def _asked(space: Space, wants: Sequence[Want]) -> dict[str, int]:
    asked: dict[str, int] = {}
    for want in wants:
        name = want.component
        mask = space.mask(name, (want.constraint,)) & ~space.hidden(name, want.constraint)
        asked[name] = asked.get(name, space.every(name)) & mask
    return asked


def _present(space: Space, asked: Mapping[str, int], wished: set[str]) -> frozenset[str]:
    """Closed over what is required, and over what one of several must be there for.

    What a wish keeps out is present only if another needs it, and then has nothing left.
    """
    providers = {space.provider(name) for name in wished if space.provided(name)}
    present = {OS, *wished, *(providers - {""})}
    queue = deque(sorted(present))
    while queue:
        name = queue.popleft()
        mask = asked.get(name, space.every(name))
        for other in sorted(_brought_by(space, name, mask, present) - present):
            present.add(other)
            queue.append(other)
    return frozenset(present)


def _brought_by(space: Space, name: str, mask: int, present: set[str]) -> set[str]:
    found: set[str] = set()
    for index in bits(mask):
        row = space.candidates[name][index]
        found |= set(row.requires)
        if name in space.catalog.virtual:
            found |= set(row.provides)
        found |= {one for one in row.constrains if space.provider(one) in present}
    component = space.catalog.components.get(name)
    if component and component.one_of and not present & set(component.one_of):
        found.add(component.one_of[0])
    return found


def prune(domains: Domains, changed_names: Sequence[str]) -> None:
    """Take away what cannot be part of any answer; stops at the first name with nothing left."""
    touching = domains.touching or _neighbours(domains)
    domains.touching = touching
    queue = deque(dict.fromkeys(one for name in changed_names for one in sorted(touching[name])))
    waiting = set(queue)
    while queue:
        name = queue.popleft()
        waiting.discard(name)
        changed = _revise(domains, name)
        if any(not domains.left[one] for one in changed):
            return
        for one in changed:
            for other in touching[one] - waiting:
                waiting.add(other)
                queue.append(other)


def _neighbours(domains: Domains) -> dict[str, set[str]]:
    touching: dict[str, set[str]] = {name: {name} for name in domains.left}
    for name, rows in domains.edges.items():
        for edges in rows.values():
            for edge in edges:
                touching[edge.target].add(name)
                touching[name].add(name)
    return touching


def _revise(domains: Domains, name: str) -> set[str]:
    left, keep = domains.left, 0
    allowed: dict[str, int] = {}
    spoken: dict[str, int] = {}
    for index in bits(left[name]):
        edges = domains.edges[name][index]
        if all(left[edge.target] & edge.mask for edge in edges):
            keep |= 1 << index
            here: dict[str, int] = {}
            for edge in edges:
                here[edge.target] = here.get(edge.target, -1) & edge.mask
            for target, mask in here.items():
                allowed[target] = allowed.get(target, 0) | mask
                spoken[target] = spoken.get(target, 0) + 1
    changed = {name} if keep != left[name] else set()
    left[name] = keep
    survivors = keep.bit_count()
    for target, mask in allowed.items():
        if spoken[target] == survivors and left[target] & ~mask:
            left[target] &= mask
            changed.add(target)
    return changed
