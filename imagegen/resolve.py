"""Cell + Catalog -> ImageSpec: every component at one release, or the facts that collide, in words.

The search is resolvelib's: a release's `requires` are its dependencies, candidates come newest
first, so the answer is the newest that fits and the same every time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from resolvelib import AbstractProvider, BaseReporter, ResolutionImpossible, Resolver

from imagegen import constraint
from imagegen.errors import ConfigError, Problem, ResolutionError
from imagegen.model import Catalog, Cell, ImageSpec, OsRelease, Pin, Release, Want

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from packaging.version import Version

OS = "os"


@dataclass(frozen=True)
class Requirement:
    """`component` must satisfy one of `alternatives`; `asked_by` says who wants that, and where."""

    component: str
    alternatives: tuple[str, ...]
    asked_by: str

    def accepts(self, candidate: Candidate) -> bool:
        if self.component == OS:
            return candidate.version in self.alternatives
        return any(
            constraint.matches(wish, candidate.version, candidate.variant)
            for wish in self.alternatives
        )

    def __str__(self) -> str:
        return f"{self.asked_by} asks for {self.component} {' or '.join(self.alternatives)}"


@dataclass(frozen=True)
class Candidate:
    """A release (or an OS) that might be chosen."""

    component: str
    version: str
    variant: str
    release: Release | None

    def __hash__(self) -> int:
        return hash((self.component, self.version, self.variant))

    def __str__(self) -> str:
        return f"{self.component} {self.version}"


class _Provider(AbstractProvider[Requirement, Candidate, str]):
    def __init__(self, catalog: Catalog) -> None:
        self._candidates = _all_candidates(catalog)

    def identify(self, requirement_or_candidate: Requirement | Candidate) -> str:
        return requirement_or_candidate.component

    def get_preference(
        self,
        identifier: str,
        resolutions: Mapping[str, Candidate],
        candidates: Mapping[str, Iterator[Candidate]],
        information: Mapping[str, Iterator[Any]],
        backtrack_causes: Sequence[Any],
    ) -> tuple[bool, int, str]:
        del resolutions, information, backtrack_causes
        return (identifier != OS, sum(1 for _ in candidates[identifier]), identifier)

    def find_matches(
        self,
        identifier: str,
        requirements: Mapping[str, Iterator[Requirement]],
        incompatibilities: Mapping[str, Iterator[Candidate]],
    ) -> Iterable[Candidate]:
        asked = list(requirements[identifier])
        refused = list(incompatibilities[identifier])
        return [
            candidate
            for candidate in self._candidates.get(identifier, ())
            if candidate not in refused and all(one.accepts(candidate) for one in asked)
        ]

    def is_satisfied_by(self, requirement: Requirement, candidate: Candidate) -> bool:
        return requirement.accepts(candidate)

    def get_dependencies(self, candidate: Candidate) -> Iterable[Requirement]:
        return [] if candidate.release is None else list(_requirements(candidate.release))


def _all_candidates(catalog: Catalog) -> dict[str, list[Candidate]]:
    found = {
        name: [
            Candidate(name, release.version, release.variant, release)
            for release in sorted(
                component.releases, key=lambda r: constraint.version_key(r.version), reverse=True
            )
        ]
        for name, component in catalog.components.items()
    }
    newest = sorted(catalog.os.values(), key=_age, reverse=True)
    found[OS] = [Candidate(OS, release.id, "", None) for release in newest]
    return found


def _age(release: OsRelease) -> tuple[str, Version]:
    return release.os_id, constraint.version_key(release.version_id)


def _requirements(release: Release) -> Iterator[Requirement]:
    where = f"{release.component} {release.version} ({release.file}:{release.line})"
    for name, alternatives in release.requires.items():
        yield Requirement(name, alternatives, where)


def resolve_cell(cell: Cell, catalog: Catalog) -> ImageSpec:
    """The cell with everything pinned.

    Raises ResolutionError naming the facts that collide.
    """
    try:
        chosen = pin(cell.wants, catalog)
    except ResolutionError as error:
        texts = [line for problem in error.problems for line in problem.evidence]
        raise ResolutionError(
            Problem(
                f"cell `{cell.name}` cannot be resolved",
                file=cell.file,
                line=cell.line,
                evidence=tuple(texts),
                hint="correct the matrix, or exclude this cell with a reason",
            )
        ) from None
    release = _os_of(chosen.pop(OS).version, catalog)
    pins = tuple(chosen[name] for name in sorted(chosen))
    spec = ImageSpec(cell, release, pins, "")
    return ImageSpec(cell, release, pins, _tag(spec))


def _os_of(name: str, catalog: Catalog) -> OsRelease:
    return catalog.os[name]


def pin(wants: Sequence[Want], catalog: Catalog) -> dict[str, Pin]:
    """Component (and `os`) -> Pin for a set of wishes.

    Raises ResolutionError whose evidence is one line for each fact that collides.
    """
    asked = [Requirement(want.component, (want.constraint,), want.asked_by) for want in wants]
    if not any(want.component == OS for want in wants):
        asked.append(Requirement(OS, tuple(sorted(catalog.os)), "every image"))
    resolver = Resolver(_Provider(catalog), BaseReporter())
    try:
        result = resolver.resolve(asked, max_rounds=100_000)
    except ResolutionImpossible as impossible:
        raise ResolutionError.of(
            "no combination of releases fits", evidence=_conflict(impossible, asked, catalog)
        ) from None
    chosen = {}
    for name, candidate in result.mapping.items():
        via = tuple(sorted({info.asked_by for info in result.criteria[name].iter_requirement()}))
        chosen[name] = Pin(name, candidate.release or _as_release(candidate), via)
    return chosen


def _as_release(candidate: Candidate) -> Release:
    """An OS as a release, so that a result has one shape."""
    return Release(OS, candidate.version, "", {}, {}, {}, {}, {}, "", "", "", 0)


def _conflict(
    impossible: ResolutionImpossible[Any, Any], asked: Sequence[Requirement], catalog: Catalog
) -> list[str]:
    """The requirements that collide, who led to them, and what the catalog has of each."""
    causes = [cause.requirement for cause in impossible.causes]
    parents = {cause.parent.component for cause in impossible.causes if cause.parent is not None}
    led = [one for one in _asked_releases(asked, catalog) if one.component in parents]
    lines = list(dict.fromkeys(str(requirement) for requirement in [*causes, *led]))
    for name in dict.fromkeys(requirement.component for requirement in causes):
        lines.append(f"the catalog has {name} {_known(name, catalog)}")
    return lines


def _asked_releases(asked: Sequence[Requirement], catalog: Catalog) -> Iterator[Requirement]:
    """What the releases that were asked for by name require in turn."""
    for requirement in asked:
        for candidate in _all_candidates(catalog)[requirement.component]:
            if candidate.release is not None and requirement.accepts(candidate):
                yield from _requirements(candidate.release)


def _known(name: str, catalog: Catalog) -> str:
    if name == OS:
        return ", ".join(sorted(catalog.os))
    rows = []
    for release in catalog.components[name].releases:
        needs = [f"{n} {' or '.join(a)}" for n, a in release.requires.items()]
        rows.append(release.version + (f" (needs {', '.join(needs)})" if needs else ""))
    return "; ".join(rows)


def _tag(spec: ImageSpec) -> str:
    """The tag template filled: an axis gives its value as asked, a component its version."""
    values = {one.component: one.version for one in spec.pins}
    values |= {omission.component: constraint.NONE for omission in spec.cell.omitted}
    values |= spec.cell.values
    clean = {name: re.sub(r"[^A-Za-z0-9._-]+", "-", value) for name, value in values.items()}
    return spec.cell.tag.format_map(clean)


def resolve_cells(cells: Sequence[Cell], catalog: Catalog) -> tuple[ImageSpec, ...]:
    """All cells of one matrix.

    Raises ResolutionError with the conflicts of every cell, or ConfigError for two with one tag.
    """
    specs: list[ImageSpec] = []
    problems: list[Problem] = []
    for cell in cells:
        try:
            specs.append(resolve_cell(cell, catalog))
        except ResolutionError as error:
            problems.extend(error.problems)
    if problems:
        raise ResolutionError(*problems)
    shared = list(_same_tags(specs))
    if shared:
        raise ConfigError(*shared)
    return tuple(specs)


def _same_tags(specs: Sequence[ImageSpec]) -> Iterator[Problem]:
    owner: dict[str, ImageSpec] = {}
    for spec in specs:
        first = owner.setdefault(spec.tag, spec)
        if first is not spec:
            yield Problem(
                f"cells `{first.cell.name}` and `{spec.cell.name}` have one tag",
                file=spec.cell.file,
                line=spec.cell.line,
                key="tag",
                evidence=(f"both would be `{spec.tag}`",),
                hint="name the axis that tells them apart in `tag`",
            )
