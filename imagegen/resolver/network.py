"""Find the smallest sets of constraints and facts that have no answer together.

A network has a domain for each name that is present. What narrows the domains are the constraints
of a user, and the relations: all that the releases of one name state about another one.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from imagegen.model.constraint import ANY, NONE
from imagegen.resolver.candidates import DRIVER
from imagegen.resolver.propagation import bits, situation_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from imagegen.model.cell import Want
    from imagegen.resolver.candidates import Edge, Space
    from imagegen.resolver.propagation import Domains

MOST_BRANCHES = 24
"""Sets of constraints that are tried for more conflicts."""


class Relation(NamedTuple):
    """What the releases of one name state about another name, in one way."""

    source: str
    target: str
    kind: str


class Group(NamedTuple):
    """Releases (as bits) that state the same: what they accept, in words (an edge of one)."""

    rows: int
    accepted: int
    edge: Edge


if TYPE_CHECKING:
    Element = Want | Relation


@dataclass(frozen=True)
class Network:
    """The domains of all names that are present, and what may narrow them."""

    space: Space
    domains: Mapping[str, int]
    unary: Mapping[Want, int]
    groups: Mapping[Relation, tuple[Group, ...]]

    @property
    def everything(self) -> frozenset[Element]:
        """Return all constraints and relations."""
        return frozenset([*self.unary, *self.groups])


def network_of(space: Space, wants: Sequence[Want], *, allow_unknown: bool = False) -> Network:
    """Make the network of constraints; a name that is asked for as `none` may be absent in it."""
    # What no release has still brings in what its component needs.
    known = [one if _is_there(space, one) else replace(one, constraint=ANY) for one in wants]
    situation = situation_of(space, known, allow_unknown=allow_unknown)
    may_lack = {want.component for want in wants if want.constraint == NONE} | {DRIVER}
    absent = {name: space.every(name) + 1 for name in may_lack & situation.present}
    domains = {}
    for name in sorted(situation.present):
        hidden = 0 if name in situation.asked else space.hidden(name)
        beyond = hidden | space.needing_more(name, situation.present)
        domains[name] = space.every(name) & ~beyond | absent.get(name, 0)
    unary = {
        want: absent[want.component] if want.constraint == NONE else _meant(space, want)
        for want in wants
        if want.constraint != ANY and want.component in situation.present
    }
    groups = _groups(situation, domains, absent)
    return Network(space, domains, unary, groups)


def _is_there(space: Space, want: Want) -> bool:
    return want.constraint == NONE or bool(_meant(space, want))


def _meant(space: Space, want: Want) -> int:
    return space.meant(want.component, want.constraint)


def _groups(
    situation: Domains, domains: Mapping[str, int], absent: Mapping[str, int]
) -> dict[Relation, tuple[Group, ...]]:
    space = situation.space
    found: dict[Relation, dict[tuple[str, ...], Group]] = {}
    for name, mask in domains.items():
        rows = mask & space.every(name)
        statements = space.statements_of(name, rows, situation.present, situation.choice)
        for index, edges in statements.items():
            for edge in edges:
                lacking = 0 if _brings(edge) else absent.get(edge.target, 0)
                same = found.setdefault(Relation(name, edge.target, edge.kind), {})
                group = same.get(edge.alternatives, Group(0, edge.mask | lacking, edge))
                same[edge.alternatives] = group._replace(rows=group.rows | 1 << index)
    return {relation: tuple(same.values()) for relation, same in found.items()}


def _brings(edge: Edge) -> bool:
    return edge.kind == "requires" and edge.target != DRIVER


class Step(NamedTuple):
    """One narrowing: what these rows of the source state narrowed the target, or themselves."""

    relation: Relation
    rows: int


class State:
    """Domains while they are narrowed, with the elements that narrowed each."""

    def __init__(self, network: Network, active: frozenset[Element]) -> None:
        self.network = network
        self.left = dict(network.domains)
        self.because: dict[str, frozenset[Element]] = dict.fromkeys(self.left, frozenset())
        self.relations = [one for one in network.groups if one in active]
        self.steps: list[Step] = []
        for want, mask in network.unary.items():
            if want in active:
                self.left[want.component] &= mask
                self.because[want.component] |= {want}

    def emptied(self) -> str:
        """Narrow all domains as far as pairs of names tell; return the first empty one."""
        touching: dict[str, list[Relation]] = {}
        for relation in self.relations:
            for name in {relation.source, relation.target}:
                touching.setdefault(name, []).append(relation)
        queue = deque(self.relations)
        waiting = set(queue)
        while queue and all(self.left.values()):
            relation = queue.popleft()
            waiting.discard(relation)
            for name in self._revised(relation):
                more = [one for one in touching[name] if one not in waiting and one != relation]
                queue.extend(more)
                waiting.update(more)
        return next((name for name, mask in self.left.items() if not mask), "")

    def _revised(self, relation: Relation) -> list[str]:
        source, target, _ = relation
        left, changed = self.left, []
        refused = accepted = spoken = 0
        for group in self.network.groups[relation]:
            here = group.rows & left[source]
            if here and not group.accepted & left[target]:
                refused |= here
            elif here:
                accepted |= group.accepted
                spoken |= here
        why = self.because[source] | self.because[target] | {relation}
        if refused:
            self.steps.append(Step(relation, refused))
            left[source] &= ~refused
            changed.append(source)
        if spoken and spoken == left[source] and left[target] & ~accepted:
            self.steps.append(Step(relation, spoken))
            left[target] &= accepted
            changed.append(target)
        for name in changed:
            self.because[name] = why
        return changed

    def branches(self) -> Iterator[State]:
        """Narrow the smallest domain that is open to one release each."""
        open_ = {name: mask for name, mask in self.left.items() if mask & (mask - 1)}
        name = min(open_, key=lambda one: (open_[one].bit_count(), one))
        for index in bits(open_[name]):
            other = State(self.network, frozenset(self.relations))
            other.left = {**self.left, name: 1 << index}
            other.because = dict(self.because)
            yield other

    @property
    def is_open(self) -> bool:
        """Say whether some name has more than one release left."""
        return any(mask & (mask - 1) for mask in self.left.values())


def refutation(state: State) -> frozenset[Element] | None:
    """Return elements that have no answer together; None if there is one."""
    empty = state.emptied()
    if empty:
        return state.because[empty]
    if not state.is_open:
        return None
    used: frozenset[Element] = frozenset()
    for branch in state.branches():
        found = refutation(branch)
        if found is None:
            return None
        used |= found
    return used


def refuted(network: Network, active: frozenset[Element]) -> frozenset[Element] | None:
    """Return those of the elements that have no answer together; None if all of them have one."""
    return refutation(State(network, active))


def minimal(
    network: Network, core: frozenset[Element], given: Sequence[Want] = ()
) -> frozenset[Element]:
    """Drop elements that are not `given` as long as the rest has no answer.

    Relations between the given names are dropped last.
    """
    kept, near = frozenset(one for one in given if one in network.unary), _names(given)
    for element in sorted(core - kept, key=lambda one: _order(one, near)):
        if element not in core:
            continue
        smaller = refuted(network, core - {element} | kept)
        if smaller is not None:
            core = smaller
    return core | kept


def _names(wants: Sequence[Want]) -> frozenset[str]:
    return frozenset(want.component for want in wants)


def _order(element: Element, near: frozenset[str]) -> tuple[int, bool, str]:
    if not isinstance(element, Relation):
        return (3, element.asked_by != "every image", element.component)
    return (len(near & {element.source, element.target}), element.kind == "provides", f"{element}")


def more_minimal(
    network: Network, first: frozenset[Element], most: int
) -> Iterator[frozenset[Element]]:
    """Find other minimal sets: each lacks something of every set before it on its way."""
    found = [first]
    essences = [_essence(network, first)]
    queue = deque(frozenset({one}) for one in _sorted(network, first))
    seen = set(queue)
    tried = 0
    while queue and len(found) < most and tried < MOST_BRANCHES:
        dropped = queue.popleft()
        known = next((one for one in found if not one & dropped), None)
        if known is None:
            tried += 1
            core = refuted(network, network.everything - dropped)
            if core is None:
                continue
            known = minimal(network, core)
            found.append(known)
            essence = _essence(network, known)
            if not _is_known(essence, essences):
                essences.append(essence)
                yield known
        for one in _sorted(network, known):
            more = dropped | {one}
            if more not in seen:
                seen.add(more)
                queue.append(more)


def _sorted(network: Network, elements: Iterable[Element]) -> list[Element]:
    """List the elements to look past."""
    essence = _essence(network, elements)
    return sorted(essence, key=lambda one: (isinstance(one, Relation), f"{one}"))


def _essence(network: Network, elements: Iterable[Element]) -> frozenset[Element]:
    """Return what tells collisions apart: who brings in a choice, such as a device, is all one."""
    choices = network.space.choices
    return frozenset(
        one
        for one in elements
        if (one.target if isinstance(one, Relation) else one.component) not in choices
    )


def _is_known(essence: frozenset[Element], others: Iterable[frozenset[Element]]) -> bool:
    """Say whether the relations of a collision, or else its constraints, are those of another."""
    relations = frozenset(one for one in essence if isinstance(one, Relation))
    for other in others:
        own = frozenset(one for one in other if isinstance(one, Relation))
        if (own and own <= relations) or (other and not own and other <= essence):
            return True
    return False
