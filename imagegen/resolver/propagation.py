"""Reduce the candidates under a set of constraints, before any search.

This is arc consistency: a candidate is removed when a name that it mentions has no candidate left
that it accepts, or when no candidate of another name accepts it. It shows most conflicts, and
leaves little to search.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from imagegen.model.constraint import NONE
from imagegen.resolver.candidates import DRIVER, LIBCUDA, OS, Choice, Edge
from imagegen.resolver.memory import remembered

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence, Set

    from imagegen.model.cell import Want
    from imagegen.model.release import Release
    from imagegen.resolver.candidates import Space


@dataclass
class Domains:
    """For each name that is present, the candidates left (as a set of bits) and their edges."""

    space: Space
    choice: Choice
    present: frozenset[str]
    asked: Mapping[str, int]
    left: dict[str, int] = field(default_factory=dict)
    touching: dict[str, set[str]] = field(default_factory=dict)
    edges: dict[str, Mapping[int, tuple[Edge, ...]]] = field(default_factory=dict)

    def rows(self, name: str, mask: int | None = None) -> list[Release]:
        """List the candidates of a name in a set (by default, those left), best first."""
        chosen = self.left[name] if mask is None else mask
        return [self.space.candidates[name][index] for index in bits(chosen)]

    def narrowed(self, name: str, mask: int) -> Domains:
        """Return the domains with a name narrowed to a set, and pruned again."""
        if mask == self.left[name]:
            return self
        other = replace(self, left={**self.left, name: mask})
        prune(other, [name])
        return other

    @property
    def empty(self) -> bool:
        """Say whether some name has no candidate left."""
        return any(not mask for mask in self.left.values())


def bits(mask: int) -> Iterator[int]:
    """List the positions of the ones in a number, lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def domains_of(space: Space, wants: Sequence[Want], *, allow_unknown: bool = False) -> Domains:
    """Find the names that constraints bring into an image, and the candidates left of each."""
    domains = situation_of(space, wants, allow_unknown=allow_unknown)
    for name in domains.present:
        everything = space.every(name) & ~space.hidden(name)
        domains.left[name] = domains.asked.get(name, everything)
    _prune_all(domains)
    return domains


def open_domains(
    space: Space,
    choice: Choice,
    present: frozenset[str],
    undecided: tuple[tuple[str, int], ...],
) -> Domains:
    """Make domains of some names alone, where all that others accept is what is left of them."""
    domains = Domains(space, choice, present, {}, dict(undecided))
    for name, mask in undecided:
        domains.touching.setdefault(name, set()).add(name)
        statements = space.statements_of(name, mask, present, choice)
        domains.edges[name] = {
            index: tuple(edge for edge in edges if edge.target in domains.left)
            for index, edges in statements.items()
        }
        for target in {edge.target for edges in domains.edges[name].values() for edge in edges}:
            domains.touching.setdefault(target, set()).add(name)
    return domains


FEW = 3
"""Sets of constraints of one kind that are pruned alone: a common start takes longer to prune."""


class Descent:
    """Computes domains for many sets of constraints that share their first ones, as cells do.

    The last axis of a matrix changes fastest. What is left under the first constraints is kept, and
    only the other constraints prune it further; the result does not depend on their order.
    """

    def __init__(self, space: Space) -> None:
        self._space = space
        self._paths: dict[Hashable, list[_Step]] = {}
        self._alone: Counter[Hashable] = Counter()

    def domains_of(self, wants: Sequence[Want], *, allow_unknown: bool = False) -> Domains:
        """Return the same as the function `domains_of`."""
        situation = situation_of(self._space, wants, allow_unknown=allow_unknown)
        key = (situation.choice, situation.present, tuple(situation.asked))
        path = self._paths.get(key)
        if path is None and self._alone[key] < FEW:
            self._alone[key] += 1
            return domains_of(self._space, wants, allow_unknown=allow_unknown)
        if path is None:
            path = self._paths[key] = [_Step("", 0, self._first(situation))]
        shared = 1
        for name, mask in situation.asked.items():
            if name not in situation.present:
                continue  # it is kept out, and nothing else adds it
            if shared < len(path) and path[shared].asked_the_same(name, mask):
                shared += 1
                continue
            del path[shared:]
            before = path[-1].domains
            path.append(_Step(name, mask, before.narrowed(name, before.left[name] & mask)))
            shared += 1
        last = path[-1].domains
        left = dict(last.left)
        return replace(last, asked=situation.asked, left=left)

    def _first(self, situation: Domains) -> Domains:
        """Compute the domains with all constraints open.

        A name that is asked for may have a variant that has to be named. A candidate that needs a
        name which is not present is asked for in none of these cells.
        """
        space, present = self._space, situation.present
        first = replace(situation, left={}, edges={})
        for name in present:
            hidden = 0 if name in situation.asked else space.hidden(name)
            first.left[name] = space.every(name) & ~hidden & ~space.needing_more(name, present)
        _prune_all(first)
        return first


class _Step(NamedTuple):
    name: str
    mask: int
    domains: Domains

    def asked_the_same(self, name: str, mask: int) -> bool:
        return self.name == name and self.mask == mask


def situation_of(space: Space, wants: Sequence[Want], *, allow_unknown: bool) -> Domains:
    """Find what is asked for, and the names that it adds, before candidates are removed."""
    choice = Choice(
        frozenset(want.component for want in wants if "+" in want.constraint), allow_unknown
    )
    asked = _without_what_is_ruled_out(space, _asked(space, wants))
    present = _present(space, asked, {w.component for w in wants if w.constraint != NONE})
    return Domains(space, choice, present, asked)


def _prune_all(domains: Domains) -> None:
    space, present, choice = domains.space, domains.present, domains.choice
    domains.touching = {name: {name} for name in domains.left}
    for name, mask in domains.left.items():
        domains.edges[name] = statements = space.statements_of(name, mask, present, choice)
        for target in {edge.target for edges in statements.values() for edge in edges}:
            domains.touching[target].add(name)
    prune(domains, sorted(domains.left))


def _asked(space: Space, wants: Sequence[Want]) -> dict[str, int]:
    asked: dict[str, int] = {}
    for want in wants:
        mask = space.meant(want.component, want.constraint)
        asked[want.component] = asked.get(want.component, mask) & mask
    return asked


def _without_what_is_ruled_out(space: Space, asked: dict[str, int]) -> dict[str, int]:
    """Drop the builds for another device than the one asked for, and those that need a `none`.

    So a build of the CPU brings nothing that only those of the GPU need.
    """
    decisive = {n: m for n, m in asked.items() if not m or n in space.catalog.virtual}
    kept = {
        name: space.without(name, mask, tuple(decisive.items())) for name, mask in asked.items()
    }
    return {name: kept[name] or mask for name, mask in asked.items()}


def _present(space: Space, asked: Mapping[str, int], wanted: set[str]) -> frozenset[str]:
    """Find all names that are present: those required, and those that a provided value needs.

    A name that a constraint keeps out is present only if another needs it; then nothing is left of
    it.
    """
    spoken = tuple((name, *space.spoken_of(name, mask)) for name, mask in asked.items())
    return _closed(space, spoken, frozenset(wanted))


@remembered
def _closed(
    space: Space,
    asked: tuple[tuple[str, frozenset[str], frozenset[str]], ...],
    wanted: frozenset[str],
) -> frozenset[str]:
    spoken = {name: (brought, limited) for name, brought, limited in asked}
    providers = {space.provider(name) for name in wanted if space.provided(name)}
    present = {OS, *wanted, *(providers - {""})}
    queue = deque(sorted(present))
    while queue:
        name = queue.popleft()
        brought, limited = spoken.get(name) or space.spoken_of(name, space.every(name))
        for other in sorted(_brought_by(space, name, brought, limited, present) - present):
            present.add(other)
            queue.append(other)
            # What others state about a part of this one counts now, such as the NCCL in a wheel.
            if other in space.providers:
                queue.extend(sorted(present - {other}))
    return frozenset(present)


def _brought_by(
    space: Space, name: str, brought: Set[str], limited: Set[str], present: set[str]
) -> set[str]:
    found = {*brought, *(one for one in limited if space.provider(one) in present)}
    found |= {LIBCUDA} if DRIVER in limited and space.provider(LIBCUDA) in present else set()
    component = space.catalog.components.get(name)
    if component and component.one_of and not present & set(component.one_of):
        found.add(component.one_of[0])
    return found


def prune(domains: Domains, changed_names: Sequence[str]) -> None:
    """Remove what cannot be in any answer; stop at the first name with nothing left."""
    touching = domains.touching
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
