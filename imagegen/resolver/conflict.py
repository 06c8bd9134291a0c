"""Explain why there is no answer: every smallest collision, and the facts that prove each."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import combinations, islice
from typing import TYPE_CHECKING

from imagegen.model.constraint import ANY, NONE
from imagegen.resolver.blame import fewest, fits
from imagegen.resolver.network import Relation, minimal, more_minimal, network_of, refuted
from imagegen.resolver.proof import facts_of
from imagegen.resolver.propagation import bits
from imagegen.resolver.warnings import reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from imagegen.model.cell import Want
    from imagegen.model.release import Release
    from imagegen.resolver.candidates import Space
    from imagegen.resolver.network import Element, Network
    from imagegen.resolver.proof import Fact

MOST = 5
MOST_TRIED = 60
"""Sets of constraints that are tried for more conflicts."""
SHORT = 2
EVERY_IMAGE, BY_DEFAULT = "every image", "by default"
SILENT = "no source says that it works, or that it fails (rule unknown-facts)"


@dataclass(frozen=True)
class Conflict:
    """One collision: the constraints that exclude each other, and the facts that prove it.

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
        """Write the whole collision in one line, with the first facts."""
        because = [*dict.fromkeys(fact.text for fact in self.facts)]
        return (
            self.sentence
            + (": " if because or self.reasons else "")
            + "; ".join([*because, *self.reasons])
        )

    def lines(self, *, but_of: str = "", with_rows: bool = False) -> tuple[str, ...]:
        """List what is below the sentence: who asks for what (not `but_of`), facts, reasons."""
        asks = [
            f"{one.asked_by} asks for {one.component} {one.constraint}"
            for one in self.wants
            if one.asked_by != but_of
        ]
        facts = [f"{one.text} ({one.row})" if with_rows else one.text for one in self.facts]
        return tuple(dict.fromkeys([*asks, *facts, *self.reasons]))


def conflict_of(space: Space, wants: Sequence[Want], *, allow_unknown: bool = False) -> Conflict:
    """Find the first collision among constraints that have no answer."""
    return next(_conflicts(space, wants, allow_unknown))


def conflicts_of(
    space: Space, wants: Sequence[Want], *, allow_unknown: bool = False
) -> tuple[Conflict, ...]:
    """Find every smallest collision among constraints that have no answer, up to five.

    What is impossible whether the unknown is allowed or not is not unknown.
    """
    found: dict[tuple[object, ...], Conflict] = {}
    for one in _conflicts(space, wants, allow_unknown):
        found.setdefault(tuple(fact.text for fact in one.facts) or (one.sentence,), one)
        if len(found) == MOST:
            return tuple(found.values())
    lax = allow_unknown or not fits(space, wants, allow_unknown=True)
    shown = [frozenset(one.wants) for one in found.values()]
    left = islice(_left(space, wants, shown, allow_unknown=lax), MOST - len(found))
    return (*found.values(), *left)


def _conflicts(space: Space, wants: Sequence[Want], allow_unknown: bool) -> Iterator[Conflict]:
    lax = allow_unknown or not fits(space, wants, allow_unknown=True)
    network = network_of(space, wants, allow_unknown=lax)
    first = _plain(space, wants)
    core: frozenset[Element] | None = None
    if first:
        yield first
        core = frozenset(one for one in first.wants if one in network.unary)
    else:
        blamed = fewest(space, wants, allow_unknown=lax)
        alone = network_of(space, blamed, allow_unknown=lax)
        core = refuted(alone, alone.everything)
        if core is not None:
            core = minimal(alone, core, blamed)
            yield _general(alone, core, blamed, unknown=not lax)
        else:
            core = refuted(network, network.everything)
            if core is None:  # it collides only in what the constraints bring in
                yield _without_proof(blamed, unknown=not lax)
                return
            core = minimal(network, core)
            yield _of(network, wants, core, unknown=not lax)
    for more in more_minimal(network, core, MOST):
        yield _of(network, wants, more, unknown=not lax)


def _left(
    space: Space, wants: Sequence[Want], shown: list[frozenset[Want]], *, allow_unknown: bool
) -> Iterator[Conflict]:
    """Find smallest sets of constraints that have no answer and hold none that is shown.

    Here a constraint is dropped with the component that it brings in. A default is no reason.
    """
    always = [one for one in wants if one.asked_by == EVERY_IMAGE]
    asked = [one for one in wants if one not in always and not one.asked_by.endswith(BY_DEFAULT)]
    start: frozenset[Want] = frozenset()
    queue, seen = deque([start]), {start}
    for _ in range(MOST_TRIED):
        if not queue:
            return
        dropped = queue.popleft()
        core = next((one for one in shown if not one & dropped), None)
        if core is None:
            rest = [one for one in asked if one not in dropped]
            if fits(space, [*always, *rest], allow_unknown=allow_unknown):
                continue
            blamed = _smallest(space, always, rest, allow_unknown=allow_unknown)
            core = frozenset(blamed)
            shown.append(core)
            conflict = _proved(space, always, blamed, allow_unknown=allow_unknown)
            if conflict:
                yield conflict
        more = [dropped | {one} for one in asked if one in core]
        queue.extend(one for one in more if one not in seen)
        seen.update(more)


def _smallest(
    space: Space, always: Sequence[Want], wants: Sequence[Want], *, allow_unknown: bool
) -> list[Want]:
    """Drop constraints as long as the rest has no answer."""
    core = [*wants]
    for want in wants:
        rest = [one for one in core if one is not want]
        if not fits(space, [*always, *rest], allow_unknown=allow_unknown):
            core = rest
    return core


def _proved(
    space: Space, always: Sequence[Want], blamed: Sequence[Want], *, allow_unknown: bool
) -> Conflict | None:
    plain = _plain(space, blamed)
    if plain or not blamed:
        return plain
    network = network_of(space, [*always, *blamed], allow_unknown=allow_unknown)
    core = refuted(network, network.everything)
    if core is None:
        return None
    return _general(network, minimal(network, core, blamed), blamed, unknown=not allow_unknown)


def _without_proof(blamed: Sequence[Want], *, unknown: bool) -> Conflict:
    return Conflict(_sentence(blamed, unknown), (), (), (), unknown, tuple(blamed))


def _of(
    network: Network, wants: Sequence[Want], core: frozenset[Element], *, unknown: bool
) -> Conflict:
    """Describe a smallest collision; who brings a name in is to blame as who narrows it."""
    relations = [one for one in core if isinstance(one, Relation)]
    blamed = [want for want in wants if want in core]
    if not relations:
        return _plain(network.space, blamed) or _general(network, core, blamed, unknown=unknown)
    names = {name for one in relations for name in (one.source, one.target)}
    named = {want.component for want in blamed}
    blamed += [
        want
        for want in wants
        if want.component in names - named and _brings(want) and want not in blamed
    ]
    core = minimal(network, core, [want for want in wants if want in blamed])
    names = {name for one in core if isinstance(one, Relation) for name in one[:2]}
    blamed = [want for want in wants if want in blamed and want.component in names]
    return _general(network, core, blamed, unknown=unknown)


def _brings(want: Want) -> bool:
    """Say whether a user asked for a component that would not be there otherwise."""
    implied = want.asked_by == EVERY_IMAGE or want.asked_by.endswith(BY_DEFAULT)
    return want.constraint != NONE and not implied


def _general(
    network: Network, core: frozenset[Element], blamed: Sequence[Want], *, unknown: bool
) -> Conflict:
    facts, catalog = facts_of(network, core), network.space.catalog
    blamed = [one for one in blamed if not one.asked_by.endswith(BY_DEFAULT)] or blamed
    reasons = _distinct(reason(catalog, fact.source, fact.target) for fact in facts)
    return Conflict(
        sentence=_sentence(blamed, unknown),
        facts=facts,
        reasons=(*reasons, *([SILENT] if unknown else [])),
        rows=_rows(release for fact in facts for release in fact.rows),
        unknown=unknown,
        wants=tuple(blamed),
    )


def _rows(releases: Iterable[Release]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f"{one.file}:{one.line}" for one in releases if one.file))


def _plain(space: Space, wants: Sequence[Want]) -> Conflict | None:
    return _twice(space, wants) or _nowhere(space, wants)


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
    """Find a constraint for a release that is not there, or only as a variant of its own."""
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


def _sentence(needed: Sequence[Want], unknown: bool) -> str:
    names = " and ".join(f"{want.component} {want.constraint}" for want in needed)
    if len(needed) == 1:
        return f"whether {names} works is unknown" if unknown else f"nothing can be {names}"
    if unknown:
        return f"whether {names} go together is unknown"
    return f"{names} do not go together"


def _distinct(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the texts that are not empty, each once."""
    return tuple(dict.fromkeys(filter(None, texts)))
