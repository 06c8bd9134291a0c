"""List other values of a constraint that fit the rest, and measure how far each is from it."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from imagegen.model.constraint import ANY, is_version, version_key
from imagegen.resolver.candidates import OS
from imagegen.resolver.propagation import bits, domains_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from imagegen.model.cell import Want
    from imagegen.resolver.candidates import Space

FAR = 10_000
A_GENERATION = 100
"""Two releases of one OS never differ by this much: a larger distance is a misspelled release."""

Distance = tuple[int, ...]


def values_of(
    space: Space, name: str, asked: str, rest: Sequence[Want], *, allow_unknown: bool
) -> list[str]:
    """List the values of a name that may fit the other constraints, the nearest first.

    Builds of one version are one value; the builds of the version asked for are values too.
    """
    domains = domains_of(space, rest, allow_unknown=allow_unknown)
    if domains.empty or name not in domains.left:
        return []
    rows = [row for row in domains.rows(name) if row.variant != "unknown"]
    values = dict.fromkeys(row.version.partition("+")[0] for row in rows if not row.own_variant)
    values |= dict.fromkeys(_builds(space, name, asked))
    others = [value for value in values if value != asked]
    return sorted(others, key=lambda value: distance(name, asked, value))


def _builds(space: Space, name: str, asked: str) -> list[str]:
    """List the builds of what is asked for that have a name of their own."""
    if asked == ANY or "+" in asked:
        return []
    meant = space.mask(name, (asked,))
    rows = [space.candidates[name][index] for index in bits(meant)]
    return [row.version for row in rows if "+" in row.version]


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
