"""Find what to ask for instead: combinations that fit and change the fewest constraints."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import combinations
from typing import TYPE_CHECKING

from imagegen.model.cell import Want
from imagegen.model.constraint import (
    ANY,
    NONE,
    is_version,
    version_key,
)
from imagegen.resolver.blame import fits
from imagegen.resolver.candidates import (
    COMPILER,
    DRIVER,
    OS,
)
from imagegen.resolver.propagation import bits, domains_of
from imagegen.resolver.search import best_answer, search

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from imagegen.model.release import Release
    from imagegen.resolver.candidates import Space
    from imagegen.resolver.propagation import Domains

HARDWARE = ("gpu", "instance", DRIVER)
"""What a user has and does not choose: it is changed only if nothing else helps."""

MOST, MOST_CHANGES, MOST_TRIES = 3, 3, 12
FAR = 10_000
A_GENERATION = 100
"""Two releases of one OS never differ by this much: a larger distance is a misspelled release."""

Distance = tuple[int, ...]


@dataclass(frozen=True)
class Alternative:
    """Constraints that fit.

    `changes` are (component, asked, instead); `chosen` is the answer to them.
    """

    changes: tuple[tuple[str, str, str], ...]
    wants: tuple[Want, ...]
    distance: Distance
    chosen: dict[str, Release]


def nearest(
    space: Space, wants: Sequence[Want], core: Sequence[Want], *, allow_unknown: bool = False
) -> list[Alternative]:
    """Find up to three alternatives: fewest changes first, then the nearest versions."""
    strict = [want for want in wants if want.constraint != ANY]
    software = [want for want in strict if want.component not in HARDWARE]
    hardware = [want for want in strict if want.component in HARDWARE]
    for changeable in (software, hardware, strict):
        blamed = [want for want in core if want in changeable]
        found = _by_changes(space, wants, changeable, blamed, allow_unknown)
        if changeable is software:
            found += _other_compiler(space, wants, allow_unknown)
        if found:
            return sorted(found, key=lambda one: (len(one.changes), one.distance))[:MOST]
    return [one for want in core for one in _without(space, wants, want, allow_unknown)][:MOST]


def _by_changes(
    space: Space,
    wants: Sequence[Want],
    changeable: Sequence[Want],
    blamed: Sequence[Want],
    allow_unknown: bool,
) -> list[Alternative]:
    """Find all that change one constraint; if they are too few, two, then three."""
    found: list[Alternative] = []
    for size in range(1, MOST_CHANGES + 1):
        for some in combinations(changeable, size):
            names = {want.component for want in some}
            known = [{one[0] for one in other.changes} for other in found]
            if any(want in blamed for want in some) and not any(one <= names for one in known):
                found += _instead(space, wants, some, allow_unknown)
        if len(found) >= MOST or (found and size > 1):
            break
    return found


def _instead(
    space: Space, wants: Sequence[Want], some: Sequence[Want], allow_unknown: bool
) -> list[Alternative]:
    opened = [replace(want, constraint=ANY) if want in some else want for want in wants]
    domains = domains_of(space, opened, allow_unknown=allow_unknown)
    if best_answer(domains) is None:
        return []
    if len(some) == 1:
        return list(_of_one(space, wants, some[0], domains, allow_unknown))
    return list(_of_many(space, wants, some, domains, allow_unknown))


def _of_one(
    space: Space, wants: Sequence[Want], want: Want, domains: Domains, allow_unknown: bool
) -> Iterator[Alternative]:
    """Find the nearest values of one constraint that fit all the others."""
    found = 0
    for value in _values(want, domains)[:MOST_TRIES]:
        changed = [replace(one, constraint=value) if one is want else one for one in wants]
        alternative = _alternative(space, wants, changed, allow_unknown)
        if alternative is not None:
            yield alternative
            found += 1
        if found == MOST:
            return


def _of_many(
    space: Space,
    wants: Sequence[Want],
    some: Sequence[Want],
    domains: Domains,
    allow_unknown: bool,
) -> Iterator[Alternative]:
    """Find one answer for several constraints.

    Each one in turn takes the nearest value that still fits with those before it.
    """
    changed = list(wants)
    for want in some:
        rest = [one for one in some if one in changed and one is not want]
        for value in _values(want, domains):
            tried = [replace(one, constraint=value) if one is want else one for one in changed]
            opened = [replace(one, constraint=ANY) if one in rest else one for one in tried]
            if fits(space, opened, allow_unknown=allow_unknown):
                changed = tried
                break
        else:
            return
    alternative = _alternative(space, wants, changed, allow_unknown)
    if alternative is not None:
        yield alternative


def _without(
    space: Space, wants: Sequence[Want], want: Want, allow_unknown: bool
) -> list[Alternative]:
    """Leave a component out, where no release of anything helps."""
    if want.component in (OS, *HARDWARE) or want.constraint == NONE:
        return []
    kept = [one for one in wants if one.component != want.component]
    changed = [*kept, replace(want, constraint=NONE)]
    chosen = search(domains_of(space, changed, allow_unknown=allow_unknown))
    if chosen is None or want.component in chosen:
        return []
    change = (want.component, want.constraint, "none")
    return [Alternative((change,), tuple(changed), (9999,), chosen)]


def _other_compiler(space: Space, wants: Sequence[Want], allow_unknown: bool) -> list[Alternative]:
    """Add a compiler other than the OS's, where none is asked for and something is compiled."""
    own = space.overruling[COMPILER]
    if not own or any(want.component == own for want in wants):
        return []
    changed = [*wants, Want(own, ANY, "an alternative")]
    domains = domains_of(space, changed, allow_unknown=allow_unknown)
    chosen = search(domains) if COMPILER in domains.present else None
    if chosen is None:
        return []
    version = chosen[own].version
    wanted = (*wants, Want(own, version, "an alternative"))
    return [Alternative(((own, "none", version),), wanted, (0, 0, 0, 0), chosen)]


def _alternative(
    space: Space, wants: Sequence[Want], changed: Sequence[Want], allow_unknown: bool
) -> Alternative | None:
    chosen = search(domains_of(space, changed, allow_unknown=allow_unknown))
    if chosen is None:
        return None
    pairs = [(old, new) for old, new in zip(wants, changed, strict=True) if old is not new]
    changes = tuple((old.component, old.constraint, new.constraint) for old, new in pairs)
    total = [distance(old.component, old.constraint, new.constraint) for old, new in pairs]
    summed = tuple(sum(parts) for parts in zip(*total, strict=True))
    return Alternative(changes, tuple(changed), summed, chosen)


def _values(want: Want, domains: Domains) -> list[str]:
    """List other values of a constraint, nearest first; builds of one version are one value."""
    name, space = want.component, domains.space
    by_full_name = bits(space.hidden(name) & space.mask(name, (want.constraint,)))
    rows = [row for row in domains.rows(name) if row.variant != "unknown"]
    values = dict.fromkeys(
        row.version.partition("+")[0] for row in rows if not row.only_by_full_name
    )
    values |= dict.fromkeys(space.candidates[name][index].version for index in by_full_name)
    return sorted(values, key=lambda value: distance(want.component, want.constraint, value))


def distance(component: str, asked: str, value: str) -> Distance:
    """Measure how far a value is from the one asked for, by major, minor and patch version."""
    if component == OS:
        return _os_distance(asked, value)
    found = re.search(r"\d+(\.\d+)*", asked)
    if found is None or not is_version(value):
        return (0, 0, 1, 0) if asked == value else _unlike(asked, value)
    old, new = version_key(found.group()).release, version_key(value).release
    length = min(3, len(old))
    return _apart(_three(old)[:length], _three(new)[:length])


def _apart(old: tuple[int, ...], new: tuple[int, ...]) -> Distance:
    """Measure the distance by the first part that differs.

    For the parts after it, the highest is nearest if the value is below, the lowest if it is above.
    """
    parts: list[int] = []
    for place, (a, b) in enumerate(zip(old, new, strict=True)):
        if a != b:
            behind = new[place + 1 :]
            parts += [abs(a - b), *(behind if new > old else [FAR - part for part in behind])]
            break
        parts.append(0)
    return (*parts, *[0] * (3 - len(parts)), int(new < old))


def _three(release: tuple[int, ...]) -> tuple[int, ...]:
    return (*release, 0, 0, 0)[:3]


def _os_distance(asked: str, value: str) -> Distance:
    old, new = (re.fullmatch(r"([a-z]+)([0-9.]+)", text) for text in (asked, value))
    if old is None or new is None or old.group(1) != new.group(1):
        return _unlike(asked, value)
    found = distance("", old.group(2), new.group(2))
    return found if found[0] < A_GENERATION else _unlike(asked, value)


def _unlike(asked: str, value: str) -> Distance:
    """Measure the distance of names: farther than any version, and more if less alike."""
    alike = SequenceMatcher(None, asked.casefold(), value.casefold()).ratio()
    return (500 + int(400 * (1 - alike)), 0, 0, 0)
