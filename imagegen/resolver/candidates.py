"""Hold the candidates that the resolver chooses from, and which of them fit together.

A candidate is a release, an OS, or a value of a name without rows of its own (the glibc of an OS).
The candidates of a name are sorted newest first; a set of them is one integer, a bit for each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from imagegen.model import constraint
from imagegen.model.catalog import COMPILER
from imagegen.model.release import OsRelease, Release
from imagegen.resolver.memory import Remembering, remembered

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from imagegen.model.catalog import Catalog

OS, DRIVER, UNKNOWN, UNSURE = "os", "driver", "unknown", "unsure"
GLIBC = "glibc"
"""What an OS provides, as its compiler; a component that provides one too replaces it."""
LIBCUDA = "libcuda"
"""The driver's library; where a component brings one, others depend on it, not on the driver."""
Kind = Literal["requires", "limits", "built_for", "known_with", "provides"]


class Edge(NamedTuple):
    """What one candidate requires of another name; it accepts the candidates in `mask` there."""

    source: Release
    target: str
    alternatives: tuple[str, ...]
    kind: Kind
    mask: int

    def __str__(self) -> str:
        wanted = " or ".join(self.alternatives)
        if self.kind == "provides":
            return f"{self.source.name} has {self.target} {wanted}"
        if self.kind == "known_with":
            return f"{self.source.name} is known with {self.target} {wanted} only"
        return f"{self.source.name} asks for {self.target} {wanted}"


class Space(Remembering):
    """The candidates of a catalog; `drivers` are the versions that constraints name."""

    def __init__(self, catalog: Catalog, drivers: Iterable[str] = ()) -> None:
        super().__init__()
        self.catalog = catalog
        self.candidates: dict[str, tuple[Release, ...]] = {OS: _systems(catalog)}
        for name, component in catalog.components.items():
            self.candidates[name] = _in_order(component.releases)
        for name, virtual in catalog.virtual.items():
            self.candidates[name] = virtual.releases  # in the order of the file: not versions
        self.candidates |= _provided(self.candidates)
        self.candidates[DRIVER] = tuple(
            replace(_value(DRIVER, version), requires={"device": ("gpu",)}) for version in drivers
        )
        self._places = {
            id(row): index for rows in self.candidates.values() for index, row in enumerate(rows)
        }
        providers = {
            name: component.name
            for component in catalog.components.values()
            for release in component.releases
            for name in release.provides
        }
        self.overruling = {name: providers.pop(name, "") for name in (GLIBC, COMPILER)}
        """The component, if any, whose compiler (or glibc) replaces the one of the OS."""
        self._providers = providers
        self.choices = frozenset(
            name
            for name, one in catalog.virtual.items()
            if not any(row.requires or row.provides for row in one.releases)
        )
        """The names that are only a choice, such as a device; others are hardware."""
        self._silent: dict[str, dict[str, str]] = {}
        for provided, provider in self._providers.items():
            self._silent.setdefault(provider, {})[provided] = UNKNOWN

    def every(self, name: str) -> int:
        """Return the set of all candidates of a name."""
        return (1 << len(self.candidates.get(name, ()))) - 1

    @remembered
    def mask(self, name: str, constraints: tuple[str, ...], allow_unknown: bool = False) -> int:
        """Return the candidates of a name that satisfy one of the constraints."""
        return sum(
            1 << index
            for index, candidate in enumerate(self.candidates.get(name, ()))
            if any(self._accepts(name, one, candidate, allow_unknown) for one in constraints)
        )

    def _accepts(self, name: str, wanted: str, candidate: Release, allow_unknown: bool) -> bool:
        if candidate.variant in (UNKNOWN, UNSURE) and allow_unknown:
            return True
        if candidate.variant == UNKNOWN:
            return wanted == UNKNOWN
        if name == DRIVER and constraint.is_version(wanted):
            return wanted == candidate.version
        if name == DRIVER and allow_unknown and "." not in candidate.version:
            # Only a branch is given, such as 525: take it as the newest driver of that branch.
            candidate = replace(candidate, version=f"{candidate.version}.9999")
        if wanted == constraint.ANY:
            return True
        if name == OS or name in self.catalog.virtual:
            return wanted.casefold() in (candidate.version.casefold(), *candidate.aliases)
        component = self.catalog.components.get(name)
        meant = component.aliases.get(wanted, wanted) if component else wanted
        if constraint.matches(meant, candidate.version, candidate.variant):
            return True
        return any(
            constraint.is_version(wanted) and constraint.matches(wanted, other, "")
            for other in candidate.aliases
        )

    def place(self, row: Release) -> int:
        """Return the index of a candidate among those of its name."""
        return self._places[id(row)]

    @remembered
    def spoken_of(self, name: str, mask: int) -> tuple[frozenset[str], frozenset[str]]:
        """Return the names that some of these candidates bring in, and those that they limit."""
        rows = [row for at, row in enumerate(self.candidates.get(name, ())) if mask >> at & 1]
        brought = {other for row in rows for other in row.requires}
        if name in self.catalog.virtual:
            brought |= {other for row in rows for other in row.provides}
        return frozenset(brought), frozenset(other for row in rows for other in row.limits)

    @remembered
    def without(self, name: str, mask: int, asked: tuple[tuple[str, int], ...]) -> int:
        """Return those of a set that require nothing else of names than what is asked for."""
        rows = self.candidates.get(name, ())
        return mask & sum(
            1 << index
            for index, row in enumerate(rows)
            if all(
                self.mask(other, row.requires[other]) & there
                for other, there in asked
                if other in row.requires and other != name
            )
        )

    @remembered
    def meant(self, name: str, wanted: str) -> int:
        """Return the candidates that a constraint asks for."""
        return self.mask(name, (wanted,)) & ~self.hidden(name, wanted)

    def needing_more(self, name: str, present: frozenset[str]) -> int:
        """Return the candidates that need a name which is not present."""
        rows = enumerate(self.candidates.get(name, ()))
        return sum(1 << index for index, row in rows if not row.requires.keys() <= present)

    @remembered
    def hidden(self, name: str, wanted: str = "") -> int:
        """Return the candidates of a variant of their own, which the constraint does not name."""
        asked, found = wanted.casefold(), 0
        for index, row in enumerate(self.candidates.get(name, ())):
            if row.own_variant and asked not in row.aliases:
                found |= (not constraint.names_variant(asked, row.own_variant)) << index
        return found

    def provided(self, name: str) -> bool:
        """Say whether a name only has values that rows of other names provide."""
        return name in self.candidates and not (
            name in (OS, DRIVER) or name in self.catalog.components or name in self.catalog.virtual
        )

    @property
    def providers(self) -> Collection[str]:
        """Return the components that contain a provided name."""
        return self._providers.values()

    def provider(self, name: str) -> str:
        """Return the component that contains a provided name; empty for other names."""
        return self._providers.get(name, "")

    def statements_of(
        self, name: str, mask: int, present: frozenset[str], choice: Choice
    ) -> Mapping[int, tuple[Edge, ...]]:
        """Map each candidate of a set, by its index, to what it requires of those present."""
        exact = frozenset({name}) & choice.exact
        return self._of_set(
            name, mask, present & self._mentioned(name), exact, choice.allow_unknown
        )

    @remembered
    def _mentioned(self, name: str) -> frozenset[str]:
        """List the names that decide what the candidates of a name state."""
        found = {COMPILER, GLIBC, *filter(None, self.overruling.values())}
        for row in self.candidates.get(name, ()):
            silent = self._silent.get(row.component, {})
            found.update(row.limits, row.known_with, row.built_for, row.provides, silent)
        return frozenset({*found, LIBCUDA} if DRIVER in found else found)

    @remembered
    def _of_set(
        self, name: str, mask: int, present: frozenset[str], exact: frozenset[str], lax: bool
    ) -> Mapping[int, tuple[Edge, ...]]:
        places = [index for index in range(mask.bit_length()) if mask >> index & 1]
        return {index: self._statements(name, index, present, exact, lax) for index in places}

    @remembered
    def _statements(
        self, name: str, index: int, present: frozenset[str], exact: frozenset[str], lax: bool
    ) -> tuple[Edge, ...]:
        row = self.candidates[name][index]
        return tuple(self._edges(row, present, bool(exact), lax))

    def _edges(
        self, row: Release, present: frozenset[str], exact: bool, lax: bool
    ) -> Iterator[Edge]:
        yield from self._of_kind(row, "requires", row.requires, lax)
        limits = {self.instead(row, name, present): texts for name, texts in row.limits.items()}
        for kind, asked in (("limits", limits), ("known_with", row.known_with)):
            here = {name: texts for name, texts in asked.items() if name in present}
            if not (kind == "known_with" and lax):
                yield from self._of_kind(row, kind, here, lax)  # type: ignore[arg-type]
        built_for = {name: texts for name, texts in row.built_for.items() if name in present}
        if exact:
            built_for = {
                name: tuple(constraint.same_major(one) for one in texts)
                for name, texts in built_for.items()
                if COMPILER in present
            }
        yield from self._of_kind(row, "built_for", built_for, lax)
        for name, value in {**self._silent.get(row.component, {}), **row.provides}.items():
            overruled = row.component == OS and self.overruling[name] in present
            if name in present and not overruled:
                place = self.candidates[name].index(_value(name, value, name in row.uncertain))
                yield Edge(row, name, (value,), "provides", 1 << place)

    def instead(self, row: Release, name: str, present: Collection[str]) -> str:
        """Return the name that a limit on a name is about, if these are present.

        Where a component brings a libcuda, only this component depends on the host's driver.
        """
        replaced = name == DRIVER and LIBCUDA in present and LIBCUDA not in row.provides
        return LIBCUDA if replaced else name

    def _of_kind(
        self, row: Release, kind: Kind, constraints: Mapping[str, tuple[str, ...]], lax: bool
    ) -> Iterator[Edge]:
        for name, alternatives in constraints.items():
            yield Edge(row, name, alternatives, kind, self.mask(name, alternatives, lax))


@dataclass(frozen=True)
class Choice:
    """How to read constraints; `exact` are the components whose build is given by its full name."""

    exact: frozenset[str] = frozenset()
    allow_unknown: bool = False


def _in_order(rows: Sequence[Release]) -> tuple[Release, ...]:
    """Sort releases, best first: by rank, then the newest."""
    newest = sorted(
        rows, key=lambda row: constraint.order_key(row.version, row.variant), reverse=True
    )
    return tuple(sorted(newest, key=lambda row: row.rank))


def _systems(catalog: Catalog) -> tuple[Release, ...]:
    """Write each OS as a release, the newest first; one whose compiler is not known comes last."""
    own = catalog.compilers
    systems = sorted(catalog.os.values(), key=lambda one: (one.id in own, one.age), reverse=True)
    return tuple(_os_release(one, own.get(one.id)) for one in systems)


def _os_release(one: OsRelease, compiler: Release | None) -> Release:
    """Write an OS as a release, so that a result has one type."""
    provides = {GLIBC: one.glibc, COMPILER: compiler.provides[COMPILER] if compiler else UNKNOWN}
    return Release(
        OS, one.id, "", {}, {}, {}, {}, {}, one.image, one.source, one.file, 1,
        provides=provides, notes=one.notes, uncertain=compiler.uncertain if compiler else (),
    )  # fmt: skip


def _value(name: str, text: str, uncertain: bool = False) -> Release:
    """Make a release of a value."""
    variant = UNKNOWN if text == UNKNOWN else UNSURE if uncertain else ""
    version = "0" if variant == UNKNOWN else text
    return Release(name, version, variant, {}, {}, {}, {}, {}, "", "", "", 0)


def _provided(candidates: Mapping[str, Sequence[Release]]) -> dict[str, tuple[Release, ...]]:
    found: dict[str, set[tuple[str, bool]]] = {}
    for rows in candidates.values():
        for row in rows:
            for name, value in row.provides.items():
                found.setdefault(name, {(UNKNOWN, False)}).add((value, name in row.uncertain))
    return {
        name: _in_order([_value(name, *value) for value in sorted(values)])
        for name, values in found.items()
    }
