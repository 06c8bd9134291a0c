"""Write down the facts that prove a collision: who states what about whom, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from imagegen.model.constraint import ANY, is_version, order_key, version_key
from imagegen.resolver.candidates import UNKNOWN
from imagegen.resolver.network import Relation, State, Step
from imagegen.resolver.propagation import bits
from imagegen.resolver.warnings import asks_for, has

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from imagegen.model.release import Release
    from imagegen.resolver.network import Element, Group, Network

FEW = 3
"""So many different statements of one name are listed, more are summed up."""
MOST_VALUES = 8


class Fact(NamedTuple):
    """What releases state about another name; `row` is the first one's `file:line`.

    Whatever of the releases (`source` and the bits of `stating`) is taken, the target is one of
    `accepted`.
    """

    text: str
    row: str
    source: str
    target: str
    stating: int
    accepted: int
    rows: tuple[Release, ...]


def facts_of(network: Network, core: frozenset[Element]) -> tuple[Fact, ...]:
    """List facts that, with the constraints of a core, leave nothing.

    Those about a choice, such as a device, come last.
    """
    state = State(network, core)
    steps = state.steps if state.emptied() else [*_whole(network, core)]
    found: dict[tuple[str, str, str], Fact] = {}
    for step in steps:
        for fact in _facts(network, step):
            found.setdefault((fact.text, fact.source, fact.target), fact)
    choices = network.space.choices
    return tuple(sorted(found.values(), key=lambda fact: fact.target in choices))


def _whole(network: Network, core: frozenset[Element]) -> Iterator[Step]:
    """List all that the relations of a core state, where no single narrowing shows it."""
    for relation in network.groups:
        if relation in core:
            for group in network.groups[relation]:
                yield Step(relation, group.rows)


def _facts(network: Network, step: Step) -> Iterator[Fact]:
    relation, rows = step
    groups = [one for one in network.groups[relation] if one.rows & rows]
    if len(groups) <= FEW:
        for group in groups:
            yield _fact(network, relation, [group], rows & group.rows)
    else:
        yield _fact(network, relation, groups, rows)


def _fact(network: Network, relation: Relation, groups: Sequence[Group], rows: int) -> Fact:
    releases = tuple(network.space.candidates[relation.source][index] for index in bits(rows))
    accepted = 0
    for group in groups:
        accepted |= group.accepted
    texts = [text for group in groups for text in group.edge.alternatives]
    who, several = _named(releases)
    text = _sentence(network, relation, who, several, _listed([*dict.fromkeys(texts)]))
    return Fact(text, releases[0].row, relation.source, relation.target, rows, accepted, releases)


def _sentence(network: Network, relation: Relation, who: str, several: bool, what: str) -> str:
    target, catalog = relation.target, network.space.catalog
    if relation.kind == "provides":
        if what == UNKNOWN:
            return f"the {target} of {who} is not known"
        return f"{who} {'have' if several else 'has'} {has(target, what)}"
    if relation.kind == "known_with":
        component = catalog.components.get(relation.source)
        missing = component.unknown.get(target, "") if component else ""
        if missing and what in ("", "none"):
            return missing.format(release=who)
        known = asks_for(target, what)
        return f"{who} {'are' if several else 'is'} known with {known} only"
    if what == ANY:
        return f"{who} {'need' if several else 'needs'} {target}"
    return f"{who} {'ask' if several else 'asks'} for {asks_for(target, what)}"


def _listed(texts: Sequence[str]) -> str:
    if len(texts) <= MOST_VALUES:
        return " or ".join(texts)
    if all(is_version(text) for text in texts):
        texts = sorted(texts, key=version_key)
    return f"{texts[0]} or {texts[1]} … or {texts[-1]} ({len(texts)} different ones)"


def _named(releases: Sequence[Release]) -> tuple[str, bool]:
    """Name releases of one component, and say whether these are several."""
    if len(releases) == 1:
        return releases[0].name, False
    component = releases[0].component
    versions = [*dict.fromkeys(one.version.partition("+")[0] for one in releases)]
    if len(versions) == 1:
        return f"{component} {versions[0]}", False
    if len(versions) <= FEW:
        return f"{component} {', '.join(versions[:-1])} and {versions[-1]}", True
    if component in ("os", "gpu", "instance"):
        return f"{component} {versions[0]}, {versions[1]} and {len(versions) - 2} more", True
    versions.sort(key=order_key)
    return f"{component} {versions[0]} to {versions[-1]} ({len(releases)} releases)", True
