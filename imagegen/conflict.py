"""Why no answer exists, in words: the fewest wishes that collide, and the rows that say so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from imagegen.domains import bits, domains_of
from imagegen.rules import reason
from imagegen.search import search

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from imagegen.domains import Domains
    from imagegen.model import Want
    from imagegen.space import Edge, Space

MOST_FACTS = 6


@dataclass(frozen=True)
class Conflict:
    """One collision: `text` in a sentence, `rows` as `file:line`, `facts` one line each.

    `unknown` says that the facts are silent, not that the combination is known to fail.
    """

    text: str
    rows: tuple[str, ...]
    facts: tuple[str, ...]
    unknown: bool
    wants: tuple[Want, ...]


def fits(space: Space, wants: Sequence[Want], *, allow_unknown: bool = False) -> bool:
    return search(domains_of(space, wants, allow_unknown=allow_unknown)) is not None


def conflict_of(space: Space, wants: Sequence[Want], *, allow_unknown: bool = False) -> Conflict:
    """The collision among wishes that nothing fits."""
    core = fewest(space, wants, allow_unknown=allow_unknown)
    unknown = not allow_unknown and fits(space, core, allow_unknown=True)
    edges = _facts(space, core, allow_unknown)
    asks = [f"{want.asked_by} asks for {want.component} {want.constraint}" for want in core]
    facts = list(dict.fromkeys([*asks, *(_say(space, edge) for edge in edges)]))
    rows = dict.fromkeys(f"{edge.source.file}:{edge.source.line}" for edge in edges)
    names = " and ".join(f"{want.component} {want.constraint}" for want in core)
    if unknown:
        text = f"whether {names} go together is unknown: the facts do not say"
    elif len(core) == 1:
        text = f"nothing can be {names}"
    else:
        text = f"{names} do not go together"
    because = "; ".join(_say(space, edge) for edge in edges[:3])
    return Conflict(
        f"{text}: {because}" if because else text, tuple(rows), tuple(facts), unknown, tuple(core)
    )


def fewest(space: Space, wants: Sequence[Want], *, allow_unknown: bool) -> list[Want]:
    """A smallest part of the wishes that still does not fit: what every image has goes first."""
    core = list(wants)
    for want in sorted(wants, key=lambda want: want.asked_by != "every image"):
        less = [one for one in core if one is not want]
        if not fits(space, less, allow_unknown=allow_unknown):
            core = less
    return core


def _say(space: Space, edge: Edge) -> str:
    why = reason(space.catalog, edge.source.component, edge.target)
    return f"{edge}: {why}" if why else str(edge)


def _facts(space: Space, core: Sequence[Want], allow_unknown: bool) -> list[Edge]:
    """What the rows of the colliding wishes ask of one another, or of a third name."""
    domains = domains_of(space, core, allow_unknown=allow_unknown)
    start = {name: domains.asked.get(name, space.every(name)) for name in sorted(domains.present)}
    edges = _narrow(domains, start)
    direct = [edge for edge in edges if not start[edge.target] & edge.mask]
    if direct:
        between = {edge.source.component for edge in direct} - set(domains.asked)
        led = [edge for edge in edges if edge.target in between and edge not in direct]
        return _few([*led, *direct])
    for one in edges:
        for other in edges:
            if one.target == other.target and not one.mask & other.mask:
                return _few([one, other])
    return _few([edge for edge in edges if edge.mask != space.every(edge.target)])


def _narrow(domains: Domains, start: dict[str, int]) -> list[Edge]:
    """What the candidates of the wishes ask, and what the few that they leave elsewhere ask."""
    edges = _edges(domains, start, domains.asked)
    for name in sorted(set(start) - set(domains.asked)):
        by_source: dict[str, int] = {}
        for edge in edges:
            if edge.target == name:
                source = edge.source.component
                by_source[source] = by_source.get(source, 0) | edge.mask
        for mask in by_source.values():
            start[name] &= mask
    settled = [name for name in start if name not in domains.asked and start[name].bit_count() < 4]
    return edges + _edges(domains, start, settled)


def _edges(domains: Domains, start: Mapping[str, int], names: Iterable[str]) -> list[Edge]:
    return [
        edge
        for name in names
        for index in bits(start[name])
        for edge in domains.space.edges(
            domains.space.candidates[name][index], domains.present, domains.choice
        )
    ]


def _few(edges: Sequence[Edge]) -> list[Edge]:
    """One of each kind of statement: the same words about other rows add nothing."""
    kept: dict[tuple[str, str, tuple[str, ...]], Edge] = {}
    for edge in edges:
        kept.setdefault((edge.source.component, edge.target, edge.alternatives), edge)
    return list(kept.values())[:MOST_FACTS]
