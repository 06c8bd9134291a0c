"""Warn about pins that fit with a reservation, one line for each.

A warning ends with the name of its rule; `dockerfiles/rules` has what the rule says.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from imagegen.model.catalog import TOOLKIT, rules_named
from imagegen.model.constraint import version_key
from imagegen.resolver.candidates import LIBCUDA
from imagegen.resolver.memory import remembered, remembered_of_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from imagegen.model.catalog import Catalog
    from imagegen.model.release import Release
    from imagegen.resolver.candidates import Space

    _WarningsOf = Callable[[Release, Mapping[str, Release], Space], Iterator[str]]

NVIDIA = "nvidia-"
SM = "sm"
"""The compute capability, which users write as sm_80 for 8.0."""

_VERSION = re.compile(r"\d+(?:\.\d+)?\b(?! different)")
"""A version, not how many of them there are."""
WHOLE = "full"
"""The tier of a run of all checks."""


def warnings(
    chosen: Mapping[str, Release], space: Space, *, allow_unknown: bool
) -> tuple[str, ...]:
    """List all warnings, sorted by component."""
    found: list[str] = []
    names = sorted(chosen)
    for name in names:
        row = chosen[name]
        if row.recommends or row.built_for or row.notes or row.confidence != "high":
            others = map(chosen.get, (*row.recommends, *row.built_for, LIBCUDA))
            found += _of_row(space, (row, *others))
        found += _unknown(row, chosen, space) if allow_unknown else ()
    for warnings_of, speakers in _speakers(space):
        for name in names:
            if name in speakers:
                found += warnings_of(chosen[name], chosen, space)
    return tuple(dict.fromkeys(found))


@remembered_of_rows
def _of_row(space: Space, rows: tuple[Release | None, ...]) -> tuple[str, ...]:
    """List the warnings of a row, which comes first, beside those that it says something of."""
    row = cast("Release", rows[0])
    chosen = {other.component: other for other in rows[1:] if other is not None}
    found = [f"{_short(row)}: {note}" for note in row.notes]
    found += [*_unmet(row, chosen, space), *_other_builds(row, chosen, space)]
    if row.confidence == "medium":
        found.append(f"{_short(row)}: its source is not certain (rule uncertain-source)")
    return tuple(found)


@remembered
def _speakers(space: Space) -> tuple[tuple[_WarningsOf, frozenset[str]], ...]:
    """List what warns of several rows together, and the components that it can warn of."""
    components = space.catalog.components
    speaking = (
        (_own_copies, [name for name, one in components.items() if one.own_copies]),
        (_other_pins, [name for name, one in components.items() if one.pip_pins.of]),
        (_default_of_pypi, components),
        (_without_toolkit, [name for name, one in components.items() if one.request.gpu_libraries]),
    )
    return tuple((warnings_of, frozenset(names)) for warnings_of, names in speaking)


def _short(row: Release) -> str:
    """Name a release without its variant, which the pins show, so that a warning fits a line."""
    return f"{row.component} {row.version}"


def _meets(space: Space, name: str, constraints: tuple[str, ...], row: Release) -> bool:
    return bool(space.mask(name, constraints) >> space.place(row) & 1)


def reason(catalog: Catalog, component: str, other: str) -> str:
    """Return why a component constrains another one, as its file says it."""
    found = catalog.components.get(component) or catalog.virtual.get(component)
    return found.rules.get(other, "") if found else ""


def _unmet(row: Release, chosen: Mapping[str, Release], space: Space) -> Iterator[str]:
    for about, constraints in row.recommends.items():
        name = space.instead(row, about, chosen)
        unmet = name in chosen and not _meets(space, name, constraints, chosen[name])
        if unmet and not proved_together(row, chosen[name], space.catalog):
            rules = rules_named(reason(space.catalog, row.component, name))
            wanted = asks_for(name, " or ".join(constraints))
            here = written(name, chosen[name].version)
            text = f"{_short(row)} is for {wanted}, not {here}"
            yield f"{text} (rule {rules[-1]})" if rules else text


def proved_together(one: Release, other: Release, catalog: Catalog) -> bool:
    """Say whether an image with both releases passed the checks of the first one.

    The first one says what it goes with, and its checks measure that, in a whole run; those of the
    other one may lack hardware. No later run may have failed. Any builds of these versions count:
    what a source says is about versions.
    """
    component = catalog.components.get(one.component)
    suites = {*component.suites} if component else set()
    with_both = [
        proof
        for proof in catalog.proofs
        if proof.tier == WHOLE
        and all(
            _public(proof.pins.get(row.component, "")) == _public(row.version)
            for row in (one, other)
        )
    ]
    latest = max(with_both, key=lambda proof: proof.at, default=None)
    return latest is not None and latest.passed and suites <= {*latest.suites}


def _public(pinned: str) -> str:
    """Return the version that a pin of any build has: 2.0.1 for `2.0.1+cu117 pypi`."""
    return pinned.partition(" ")[0].partition("+")[0]


def _other_builds(row: Release, chosen: Mapping[str, Release], space: Space) -> Iterator[str]:
    for name, constraints in row.built_for.items():
        if name in chosen and not _meets(space, name, constraints, chosen[name]):
            own, here = " or ".join(constraints), chosen[name].version
            text = f"{_short(row)} brings {name} {own} of its own, the image has {here}"
            yield f"{text} (rule two-cudas)"


def _unknown(row: Release, chosen: Mapping[str, Release], space: Space) -> Iterator[str]:
    """Warn about what is not known to work: missing or uncertain facts, a driver's branch."""
    for name, constraints in row.known_with.items():
        unmet = name in chosen and not _meets(space, name, constraints, chosen[name])
        if unmet and not proved_together(row, chosen[name], space.catalog):
            wanted, here = " or ".join(constraints) or "nothing", chosen[name].version
            text = f"{_short(row)} is known with {name} {wanted} only; {here} is unknown"
            yield f"{text} (rule unknown-facts)"
    for name, constraints in {**row.requires, **row.limits}.items():
        other = chosen.get(name)
        if other is not None and not _meets(space, name, constraints, other):
            here = "what is here" if other.variant == "unknown" else f"{name} {other.version}"
            text = f"{_short(row)} asks for {name} {' or '.join(constraints)}"
            yield f"{text}; whether {here} will do is unknown (rule unknown-facts)"


def _own_copies(row: Release, chosen: Mapping[str, Release], space: Space) -> Iterator[str]:
    """Warn about a part that a release brings in another version than the image has."""
    for value, copy in space.catalog.components[row.component].own_copies.items():
        own = row.provides.get(value, "")
        for other in (chosen[name] for name in copy.of if own and name in chosen):
            if own == other.version or set(row.wheels) & set(other.wheels):
                continue  # of one wheel there is one release in an image: see `_other_pins`
            version = "one of unknown version" if own == "unknown" else row.provided(value)
            yield _filled(copy.warning, row, version, other)


def _other_pins(row: Release, chosen: Mapping[str, Release], space: Space) -> Iterator[str]:
    """Warn about a wheel of NVIDIA in another version than the one that a wheel asks pip for."""
    pins = space.catalog.components[row.component].pip_pins
    for other in (chosen[name] for name in pins.of if name in chosen):
        own = str(row.facts.get(other.component) or "")
        wheels = [wheel for wheel in other.wheels if wheel.startswith(NVIDIA)]
        if wheels and own and version_key(own) != version_key(other.version):
            yield _filled(pins.warning, row, own, other)


def _filled(warning: str, row: Release, own: str, other: Release) -> str:
    return warning.format(
        own=own, release=_short(row), component=other.component, other=other.version
    )


def _default_of_pypi(row: Release, chosen: Mapping[str, Release], space: Space) -> Iterator[str]:
    """Warn where pip alone would take a build that does not run on the requested GPU."""
    gpu, minor = chosen.get("gpu"), row.facts.get("pypi_cuda")
    if gpu is None or not minor:
        return
    toolkit, public = space.catalog.with_role(TOOLKIT), row.version.partition("+")[0]
    for other in space.candidates[row.component]:
        same = other.version.partition("+")[0] == public and other.facts.get(toolkit) == minor
        constraints = other.limits.get("sm", ())
        if same and constraints and not _meets(space, "sm", constraints, chosen["sm"]):
            text = f"pip's default build of {public}, for CUDA {minor}, does not run on"
            yield f"{text} {gpu.version} (rule default-wheel)"
            return


def _without_toolkit(row: Release, chosen: Mapping[str, Release], space: Space) -> Iterator[str]:
    """Warn about a component that lacks a library that it needs to compute on a GPU."""
    device, component = chosen.get("device"), space.catalog.components[row.component]
    missing = [name for name in component.request.gpu_libraries if name not in chosen]
    if not missing or (device and device.version == "cpu"):
        return
    toolkit = space.catalog.with_role(TOOLKIT)
    lacking = "CUDA" if toolkit in missing else missing[0].upper()
    if component.one_of and not device:
        return  # what it stands on computes on the CPU too, and says so
    rules = rules_named(reason(space.catalog, row.component, toolkit))
    text = f"{_short(row)} computes on the CPU here: the image has no {lacking}"
    text += f" (rule {rules[-1]})" if rules else ""
    yield f"{text}; `{missing[0]}=any` says why"


def written(name: str, text: str) -> str:
    """Write a constraint on a name, or a value of it."""
    return _VERSION.sub(_sm, text) if name == SM else text


def _sm(found: re.Match[str]) -> str:
    major, _, minor = found[0].partition(".")
    return f"sm_{major}{minor or 0}"


def asks_for(name: str, text: str) -> str:
    """Name what is constrained, and how: `torch >=1.5`, but `sm_80`, which names itself."""
    return written(name, text) if name == SM else f"{name} {text}"


def has(name: str, value: str) -> str:
    """Name a value that something has; a compute capability is written in both ways."""
    if name == SM:
        return f"{written(name, value)} (compute capability {value})"
    return f"{name} {value}"
