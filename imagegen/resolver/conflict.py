"""Explain why there is no answer: the fewest colliding constraints, and the rows that prove it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

from imagegen.model.constraint import ANY, NONE
from imagegen.resolver.candidates import DRIVER
from imagegen.resolver.propagation import bits, domains_of
from imagegen.resolver.search import any_answer
from imagegen.resolver.warnings import reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from imagegen.model.cell import Want
    from imagegen.resolver.candidates import Edge, Space
    from imagegen.resolver.propagation import Domains

MOST_FACTS = 6
DEVICE = "device"


@dataclass(frozen=True)
class Conflict:
    """One collision: `text` in a sentence, `rows` as `file:line`, `facts` one line each.

    With `unknown`, no fact says that the combination works; it is not known to fail.
    """

    text: str
    rows: tuple[str, ...]
    facts: tuple[str, ...]
    unknown: bool
    wants: tuple[Want, ...]


def fits(space: Space, wants: Sequence[Want], *, allow_unknown: bool = False) -> bool:
    """Say whether constraints have an answer."""
    return any_answer(domains_of(space, wants, allow_unknown=allow_unknown)) is not None


def conflict_of(space: Space, wants: Sequence[Want], *, allow_unknown: bool = False) -> Conflict:
    """Find the collision among constraints that have no answer."""
    plain = _twice(space, wants) or _nowhere(space, wants)
    if plain:
        return plain
    core, needed = fewest(space, wants, allow_unknown=allow_unknown)
    own = _with_own_words(core, needed)
    unknown = not allow_unknown and fits(space, own, allow_unknown=True)
    edges, clear = _facts(space, own, needed, allow_unknown)
    if not clear:
        strict = [want for want in wants if want.constraint != ANY]
        more, clear = _facts(space, wants, strict, allow_unknown)
        edges = more if clear else edges
        sources = {edge.source.component for edge in edges}
        needed = [want for want in strict if want.component in sources] if clear else needed
    facts = list(dict.fromkeys([*map(_ask, needed), *(_say(space, edge) for edge in edges)]))
    rows = dict.fromkeys(f"{edge.source.file}:{edge.source.line}" for edge in edges)
    text = _sentence(needed, unknown)
    reasons = [reason(space.catalog, edge.source.component, edge.target) for edge in edges[:2]]
    because = "; ".join(map(str, edges[:2])) + _in_brackets(reasons)
    text = f"{text}: {because}" if edges else text
    return Conflict(text, tuple(rows), tuple(facts), unknown, tuple(needed))


def _twice(space: Space, wants: Sequence[Want]) -> Conflict | None:
    """Find two constraints for one name that no candidate satisfies both."""
    strict = [want for want in wants if want.constraint != ANY]
    for one, other in combinations(strict, 2):
        if one.component != other.component:
            continue
        masks = [space.mask(want.component, (want.constraint,)) for want in (one, other)]
        if any(masks) and not masks[0] & masks[1]:
            return _excluded(space, one, other, masks)
    return None


def _excluded(space: Space, one: Want, other: Want, masks: Sequence[int]) -> Conflict:
    name = one.component
    firsts = [space.candidates[name][next(bits(mask))] for mask in masks if mask]
    why = _in_brackets([reason(space.catalog, name, name)])
    text = f"{name} cannot be {one.constraint} and {other.constraint}{why}"
    rows = tuple(f"{row.file}:{row.line}" for row in firsts)
    return Conflict(text, rows, (_ask(one), _ask(other)), False, (one, other))


def _nowhere(space: Space, wants: Sequence[Want]) -> Conflict | None:
    """Find a constraint for a release that the catalog lacks, or has only under its full name."""
    for want in wants:
        name, asked = want.component, want.constraint
        mask, hidden = space.mask(name, (asked,)), space.hidden(name, asked)
        if asked == NONE or mask & ~hidden:
            continue
        rows = [space.candidates[name][index] for index in bits(mask)]
        text = f"the catalog has no {name} {asked}: nothing is known of it"
        if rows:
            notes = "; ".join(note for row in rows for note in row.notes)
            text = f"{name} {asked} is there as {rows[0].name} alone, to be asked for by that name"
            text += _in_brackets([notes])
        where = tuple(f"{row.file}:{row.line}" for row in rows)
        return Conflict(text, where, (_ask(want),), False, (want,))
    return None


def _ask(want: Want) -> str:
    return f"{want.asked_by} asks for {want.component} {want.constraint}"


def _sentence(needed: Sequence[Want], unknown: bool) -> str:
    names = " and ".join(f"{want.component} {want.constraint}" for want in needed)
    if unknown:
        return f"whether {names} go together is unknown: the facts do not say"
    if len(needed) == 1:
        return f"nothing can be {names}"
    return f"{names} do not go together"


def _in_brackets(reasons: Iterable[str]) -> str:
    text = "; ".join(dict.fromkeys(filter(None, reasons)))
    return f" ({text})" if text else ""


def fewest(
    space: Space, wants: Sequence[Want], *, allow_unknown: bool
) -> tuple[list[Want], list[Want]]:
    """Open as many constraints as possible while nothing fits; return all, and those to blame.

    A constraint is opened (`any`), not dropped: its component stays in the image.
    """
    strict = [want for want in wants if want.constraint != ANY]
    pair = _pair(domains_of(space, wants, allow_unknown=allow_unknown), strict)
    if pair:
        return [one if one in pair else replace(one, constraint=ANY) for one in wants], pair
    core = list(wants)
    for want in sorted(wants, key=lambda want: want.asked_by != "every image"):
        opened = [replace(one, constraint=ANY) if one is want else one for one in core]
        if want.constraint != ANY and want.component == DRIVER:
            opened = [one for one in core if one is not want]
        if not fits(space, opened, allow_unknown=allow_unknown):
            core = opened
    blamed = [
        original
        for original, want in zip(_still_there(wants, core), core, strict=True)
        if want.constraint != ANY
        or fits(space, [one for one in core if one is not want], allow_unknown=allow_unknown)
    ]
    return core, blamed or core


def _pair(domains: Domains, strict: Sequence[Want]) -> list[Want]:
    """Find the first two constraints that directly exclude each other; empty if there are none."""
    start, statements = domains.asked, {want.component: _says(domains, want) for want in strict}
    for one in strict:
        for other in strict:
            first, second = one.component, other.component
            if first == second or not start[first] or not start[second]:
                continue
            allowed = _allowed(statements[second])
            for edges in statements[first]:
                masks = [(edge.target, edge.mask) for edge in edges]
                here = [mask & start[second] for target, mask in masks if target == second]
                third = [mask & allowed[name] for name, mask in masks if name in allowed]
                if all([*here, *third]):
                    break
            else:
                return [want for want in strict if want in (one, other)]
    return []


def _says(domains: Domains, want: Want) -> list[tuple[Edge, ...]]:
    """List what each candidate of a constraint requires of others."""
    name = want.component
    return [
        domains.space.statements(name, index, domains.present, domains.choice)
        for index in bits(domains.asked[want.component])
    ]


def _allowed(statements: Sequence[tuple[Edge, ...]]) -> dict[str, int]:
    """Map each name that all candidates mention to what any of them accepts there."""
    spoken = [{edge.target for edge in edges} for edges in statements]
    everywhere = set.intersection(*spoken) if spoken else set()
    allowed = dict.fromkeys(everywhere, 0)
    for edges in statements:
        for edge in edges:
            if edge.target in allowed:
                allowed[edge.target] |= edge.mask
    return allowed


def _still_there(wants: Sequence[Want], core: Sequence[Want]) -> list[Want]:
    """Find the original of each constraint of a core, which has them in their order."""
    left = list(wants)
    found = []
    for want in core:
        while left[0].component != want.component:
            left.pop(0)
        found.append(left.pop(0))
    return found


def _with_own_words(core: Sequence[Want], needed: Sequence[Want]) -> list[Want]:
    """Replace the constraints to blame in a core by the original ones."""
    own = {want.component for want in needed}
    return [*needed, *(want for want in core if want.component not in own)]


def _say(space: Space, edge: Edge) -> str:
    return f"{edge}{_in_brackets([reason(space.catalog, edge.source.component, edge.target)])}"


def _facts(
    space: Space, core: Sequence[Want], needed: Sequence[Want], allow_unknown: bool
) -> tuple[list[Edge], bool]:
    """Find what the rows of the colliding constraints require of one another, or of a third name.

    The second result says whether two of these statements directly exclude each other.
    """
    domains = domains_of(space, core, allow_unknown=allow_unknown)
    start = {name: domains.asked.get(name, space.every(name)) for name in sorted(domains.present)}
    there = [want.component for want in needed if want.component in start]
    edges = _narrow(domains, start, there)
    direct = [edge for edge in edges if not start[edge.target] & edge.mask]
    names = {want.component for want in needed}
    plain = [edge for edge in direct if {edge.source.component, edge.target} <= names]
    excluded = {edge.source.line for edge in direct if edge in plain or edge.target == DEVICE}
    sources = {edge.source.component for edge in plain}
    if any(start[name].bit_count() <= len(excluded) for name in sources):
        return _few(plain), True
    if direct:
        between = {edge.source.component for edge in direct} - names
        led = [edge for edge in edges if edge.target in between and edge not in direct]
        return _few([*led, *direct]), True
    for one in edges:
        for other in edges:
            if one.target == other.target and not one.mask & other.mask:
                return _few([one, other]), True
    return _few([edge for edge in edges if edge.mask != space.every(edge.target)]), False


def _narrow(domains: Domains, start: dict[str, int], needed: Sequence[str]) -> list[Edge]:
    """List what the constraints to blame require, and what the few candidates left require."""
    edges = _edges(domains, start, dict.fromkeys(needed))
    reached: dict[str, None] = {}
    for name in sorted(set(start) - set(needed)):
        by_source: dict[str, int] = {}
        for edge in edges:
            if edge.target == name:
                source = edge.source.component
                by_source[source] = by_source.get(source, 0) | edge.mask
        for mask in by_source.values():
            start[name] &= mask
        if by_source and start[name].bit_count() <= MOST_FACTS:
            reached[name] = None
    return edges + _edges(domains, start, reached)


def _edges(domains: Domains, start: Mapping[str, int], names: Iterable[str]) -> list[Edge]:
    return [
        edge
        for name in names
        for index in bits(start[name])
        for edge in domains.space.statements(name, index, domains.present, domains.choice)
    ]


def _few(edges: Sequence[Edge]) -> list[Edge]:
    """Keep one of each kind of statement: the same words about other rows add nothing."""
    kept: dict[tuple[str, str, tuple[str, ...]], Edge] = {}
    for edge in edges:
        if edge.target == DEVICE and any(one.target != DEVICE for one in edges):
            continue
        kept.setdefault((edge.source.component, edge.target, edge.alternatives), edge)
    return list(kept.values())[:MOST_FACTS]
