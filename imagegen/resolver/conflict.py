"""Explain why there is no answer: the fewest colliding constraints, and the rows that prove it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from imagegen.model.constraint import ANY, NONE
from imagegen.resolver.candidates import DRIVER
from imagegen.resolver.propagation import bits, domains_of
from imagegen.resolver.search import best_answer
from imagegen.resolver.warnings import reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from imagegen.model.cell import Want
    from imagegen.model.release import Release
    from imagegen.resolver.candidates import Edge, Space
    from imagegen.resolver.propagation import Domains

MOST_FACTS = 6
DEVICE = "device"
SILENT = "no source says that it works, or that it fails (rule unknown-facts)"


class Fact(NamedTuple):
    """What a release requires of another name, and the `file:line` of that."""

    text: str
    row: str


@dataclass(frozen=True)
class Conflict:
    """One collision: the constraints that exclude each other, and the releases that prove it.

    `sentence` names the constraints (`wants`), `reasons` end with the names of rules, `rows` are
    `file:line`. With `unknown`, no fact says that the combination works; it is not known to fail.
    """

    sentence: str
    facts: tuple[Fact, ...]
    reasons: tuple[str, ...]
    rows: tuple[str, ...]
    unknown: bool
    wants: tuple[Want, ...]

    @property
    def text(self) -> str:
        """Write the whole collision in one line, with the first two facts."""
        because = [*(fact.text for fact in self.facts[:2]), *self.reasons]
        return self.sentence + (f": {'; '.join(because)}" if because else "")

    def lines(self, *, but_of: str = "", with_rows: bool = False) -> tuple[str, ...]:
        """List what is below the sentence: who asks for what (not `but_of`), facts, reasons."""
        asks = [_ask(want) for want in self.wants if want.asked_by != but_of]
        facts = [f"{one.text} ({one.row})" if with_rows else one.text for one in self.facts]
        return tuple(dict.fromkeys([*asks, *facts, *self.reasons]))


def fits(space: Space, wants: Sequence[Want], *, allow_unknown: bool = False) -> bool:
    """Say whether constraints have an answer."""
    return best_answer(domains_of(space, wants, allow_unknown=allow_unknown)) is not None


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
    reasons = _distinct(reason(space.catalog, edge.source.component, edge.target) for edge in edges)
    return Conflict(
        sentence=_sentence(needed, unknown),
        facts=tuple({str(edge): Fact(str(edge), edge.source.row) for edge in edges}.values()),
        reasons=(*reasons, *([SILENT] if unknown else [])),
        rows=_rows(edge.source for edge in edges),
        unknown=unknown,
        wants=tuple(needed),
    )


def _rows(releases: Iterable[Release]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f"{one.file}:{one.line}" for one in releases))


def _twice(space: Space, wants: Sequence[Want]) -> Conflict | None:
    """Find two constraints for one name that no candidate satisfies both."""
    strict = [want for want in wants if want.constraint != ANY]
    for pair in combinations(strict, 2):
        masks = [space.mask(want.component, (want.constraint,)) for want in pair]
        there = all(mask or want.constraint == NONE for mask, want in zip(masks, pair, strict=True))
        same = pair[0].component == pair[1].component
        if same and there and any(masks) and not masks[0] & masks[1]:
            return _excluded(space, pair, masks)
    return None


def _excluded(space: Space, pair: tuple[Want, Want], masks: Sequence[int]) -> Conflict:
    name = pair[0].component
    firsts = [space.candidates[name][next(bits(mask))] for mask in masks if mask]
    text = f"{name} cannot be {pair[0].constraint} and {pair[1].constraint}"
    reasons = _distinct([reason(space.catalog, name, name)])
    return Conflict(text, (), reasons, _rows(firsts), False, pair)


def _nowhere(space: Space, wants: Sequence[Want]) -> Conflict | None:
    """Find a constraint for a release that the catalog lacks, or has only under its full name."""
    for want in wants:
        name, asked = want.component, want.constraint
        mask, hidden = space.mask(name, (asked,)), space.hidden(name, asked)
        if asked == NONE or mask & ~hidden:
            continue
        rows = [space.candidates[name][index] for index in bits(mask)]
        text = f"the catalog has no {name} {asked}"
        reasons: tuple[str, ...] = ("nothing is known of it (rule unknown-facts)",)
        if rows:
            text = f"{name} {asked} is there as {rows[0].name} alone, to be asked for by that name"
            reasons = _distinct(note for row in rows for note in row.notes)
        return Conflict(text, (), reasons, _rows(rows), False, (want,))
    return None


def _ask(want: Want) -> str:
    return f"{want.asked_by} asks for {want.component} {want.constraint}"


def _sentence(needed: Sequence[Want], unknown: bool) -> str:
    names = " and ".join(f"{want.component} {want.constraint}" for want in needed)
    if unknown:
        return f"whether {names} go together is unknown"
    if len(needed) == 1:
        return f"nothing can be {names}"
    return f"{names} do not go together"


def _distinct(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the texts that are not empty, each once."""
    return tuple(dict.fromkeys(filter(None, texts)))


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
    asked = domains.asked[name]
    return [*domains.space.statements_of(name, asked, domains.present, domains.choice).values()]


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
        for edges in domains.space.statements_of(
            name, start[name], domains.present, domains.choice
        ).values()
        for edge in edges
    ]


def _few(edges: Sequence[Edge]) -> list[Edge]:
    """Keep one of each kind of statement: the same words about other rows add nothing."""
    kept: dict[tuple[str, str, tuple[str, ...]], Edge] = {}
    for edge in edges:
        if edge.target == DEVICE and any(one.target != DEVICE for one in edges):
            continue
        kept.setdefault((edge.source.component, edge.target, edge.alternatives), edge)
    return list(kept.values())[:MOST_FACTS]
