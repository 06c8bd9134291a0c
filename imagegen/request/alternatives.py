"""Find what to ask for instead: the fewest changes of a request that have an answer.

Each alternative is asked as a request of its own, so that its pins are what the command answers.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from imagegen.model.catalog import COMPILER
from imagegen.model.cell import Want
from imagegen.model.constraint import ANY, NONE, is_version, version_key
from imagegen.request.distances import FAR, distance, values_of
from imagegen.resolver.blame import fits
from imagegen.resolver.candidates import DRIVER, LIBCUDA, OS
from imagegen.resolver.propagation import domains_of
from imagegen.resolver.refusal import Alternative

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from imagegen.model.catalog import Catalog
    from imagegen.model.image import ImageSpec
    from imagegen.request.distances import Distance
    from imagegen.resolver.candidates import Space

    Answer = Callable[[Mapping[str, str]], tuple[Mapping[str, str], ImageSpec] | None]
    """Maps constraints to the pins of their answer and the answer; None where there is none."""
    Reader = Callable[[Mapping[str, str]], Sequence[Want]]

HARDWARE = ("gpu", "instance", DRIVER)
"""What a user has and does not choose: such a change comes after all others."""

FEW, MOST_CHANGES, MOST_TRIES = 3, 3, 8


class Alternatives:
    """Finds the alternatives to constraints without an answer."""

    def __init__(
        self, catalog: Catalog, space: Space, read: Reader, answer: Answer, *, allow_unknown: bool
    ) -> None:
        self._catalog = catalog
        self._space = space
        self._read = read
        self._answer = answer
        self._allow_unknown = allow_unknown

    def nearest(self, constraints: Mapping[str, str]) -> list[Alternative]:
        """Find one for each key of which a change alone will do, then those of several keys."""
        keys = [key for key, value in constraints.items() if value != ANY]
        by_key = {
            key: sorted(self._of_one(constraints, key), key=lambda one: one.known_bad)
            for key in keys
        }
        first = [found[0] for found in by_key.values() if found]
        first += [*self._added(constraints), *self._successors(constraints)]
        more = [one for found in by_key.values() for one in found[1:]]
        found = (
            sorted(first, key=nearest_first)
            + sorted(more, key=nearest_first)[: max(0, FEW - len(first))]
        )
        if len(found) < FEW:
            alone = {key for key, some in by_key.items() if some}
            found += self._of_several(constraints, [key for key in keys if key not in alone])
        return _distinct(found)

    def _wants(self, constraints: Mapping[str, str]) -> Sequence[Want]:
        return self._read(constraints)

    def _fits(self, constraints: Mapping[str, str]) -> bool:
        return fits(self._space, self._wants(constraints), allow_unknown=self._allow_unknown)

    def _component(self, key: str) -> str:
        return self._catalog.request_keys.get(key, (key, ""))[0]

    def _of_one(self, constraints: Mapping[str, str], key: str) -> Iterator[Alternative]:
        """Find the nearest values of one key that fit all the others; else leave it out."""
        found = 0
        for value in self._values(constraints, key)[:MOST_TRIES]:
            one = self._made(constraints, {key: value})
            if one:
                yield one
                found += 1
            if found == FEW or (found and key in HARDWARE):
                return
        if not found:
            yield from self._without(constraints, key)

    def _values(self, constraints: Mapping[str, str], key: str) -> list[str]:
        component, asked = self._component(key), constraints[key]
        opened = {**constraints, key: ANY}
        if asked == NONE and component not in self._catalog.components:
            return []
        rest = [*self._wants(opened), Want(component, ANY, "an alternative")]
        if key == DRIVER:  # none is asked for, so that every driver is a candidate
            rest = [want for want in rest if want.component != DRIVER or want.constraint == ANY]
        return values_of(self._space, component, asked, rest, allow_unknown=self._allow_unknown)

    def _successors(self, constraints: Mapping[str, str]) -> Iterator[Alternative]:
        """Take the variant that comes after the last release of one (`ofed=25.01`: `rdma=doca`)."""
        for key, (name, variant) in self._catalog.request_keys.items():
            component, asked = self._catalog.components[name], constraints.get(key, ANY)
            successor = component.request.successors.get(variant)
            known = [row.version for row in component.releases if row.variant == variant]
            if (
                not successor
                or not is_version(asked)
                or max(map(version_key, known)) >= version_key(asked)
            ):
                continue
            rest = {name: value for name, value in constraints.items() if name != key}
            one = self._made(rest, {name: successor}, added=f"{key} {asked}")
            if one:
                yield one

    def _without(self, constraints: Mapping[str, str], key: str) -> Iterator[Alternative]:
        if key == OS or constraints[key] == NONE:
            return
        component = self._component(key)
        dropped = key in HARDWARE or component not in self._catalog.components
        one = self._made(constraints, {key: ANY if dropped else NONE})
        if one and (dropped or component not in one.pins):
            yield one
        elif not dropped:
            yield from self._unasked(constraints, key, component)

    def _unasked(
        self, constraints: Mapping[str, str], key: str, component: str
    ) -> Iterator[Alternative]:
        """Take what an open request has, or leave the key out altogether."""
        opened = self._answer({**constraints, key: ANY})
        one = self._made(constraints, {key: opened[0].get(component, ANY)}) if opened else None
        rest = {name: value for name, value in constraints.items() if name != key}
        found = self._answer(rest) if rest and not one else None
        if one:
            yield one
        elif found is not None:
            yield Alternative(((component, constraints[key], ANY),), rest, (FAR,), *found)

    def _made(
        self, constraints: Mapping[str, str], changed: Mapping[str, str], *, added: str = ""
    ) -> Alternative | None:
        new = {**constraints, **changed}
        new = {key: value for key, value in new.items() if not self._says_nothing(key, value)}
        found = self._answer(new) if new else None
        if found is None:
            return None
        changes = tuple(
            (self._component(key), constraints.get(key, added or NONE), value)
            for key, value in changed.items()
        )
        total: list[Distance] = [
            distance(component, old, value) for component, old, value in changes
        ]
        summed = tuple(sum(parts) for parts in zip(*total, strict=True))
        return Alternative(changes, new, summed, *found)

    def _says_nothing(self, key: str, value: str) -> bool:
        return value == ANY and self._component(key) not in self._catalog.components

    def _added(self, constraints: Mapping[str, str]) -> list[Alternative]:
        """Add another compiler than the OS's, or a newer libcuda than the driver's.

        Only where it has a use: something is compiled, or a driver is named.
        """
        found = []
        uses = {self._space.overruling[COMPILER]: COMPILER}
        uses |= {self._space.provider(LIBCUDA): LIBCUDA} if DRIVER in constraints else {}
        for own, use in uses.items():
            opened = {**constraints, own: ANY}
            if not own or own in constraints or not self._fits(opened):
                continue
            if use not in domains_of(self._space, self._wants(opened)).present:
                continue
            answer = self._answer(opened)
            found.append(self._made(constraints, {own: answer[0][own]}) if answer else None)
        return [one for one in found if one]

    def _of_several(
        self, constraints: Mapping[str, str], keys: Sequence[str]
    ) -> Iterator[Alternative]:
        """Find the nearest answers to a change of two keys; if there are none, of three."""
        for size in range(2, MOST_CHANGES + 1):
            found = [
                one
                for some in combinations(keys, size)
                if self._fits({**constraints, **dict.fromkeys(some, ANY)})
                for one in self._of_these(constraints, some)
            ]
            if found:
                yield from sorted(found, key=nearest_first)[:FEW]
                return

    def _of_these(
        self, constraints: Mapping[str, str], some: Sequence[str]
    ) -> Iterator[Alternative]:
        """Find one answer: each key in turn takes the nearest value that fits with the others."""
        changed: dict[str, str] = {}
        for key in some:
            rest = dict.fromkeys((one for one in some if one not in changed and one != key), ANY)
            now = {**constraints, **changed, **rest}
            for value in self._values(now, key):
                if self._fits({**now, key: value}):
                    changed[key] = value
                    break
            else:
                return
        one = self._made(constraints, changed)
        if one:
            yield one


def nearest_first(one: Alternative) -> tuple[int, bool, bool, Distance]:
    """Make a key: the fewest changes first, none of hardware, none known to fail, the nearest."""
    hardware = any(key in HARDWARE for key, _, _ in one.changes)
    return len(one.changes), hardware, one.known_bad, one.distance


def _distinct(found: Sequence[Alternative]) -> list[Alternative]:
    by_request = {frozenset(one.constraints.items()): one for one in reversed(found)}
    return [one for one in found if by_request[frozenset(one.constraints.items())] is one]
