"""Answer a request: pin one image for its constraints, or give the facts that collide."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from imagegen.model import constraint
from imagegen.model.catalog import CHECKS, TOOLKIT
from imagegen.model.cell import Cell, Omission, Want
from imagegen.model.image import FLAVOUR
from imagegen.request.arguments import MATRIX, as_cell, meant, unknown_values
from imagegen.request.defaults import CPU, DEVICE, GPU, WITHOUT_GPU, names_a_gpu, with_defaults
from imagegen.resolver.blame import fits
from imagegen.resolver.candidates import DRIVER, OS, Space
from imagegen.resolver.propagation import domains_of
from imagegen.resolver.refusal import EVERY_IMAGE, THE_REQUEST, Refusal, Unbuilt
from imagegen.resolver.resolve import constraints_of, resolve_cell, space_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from imagegen.model.catalog import Catalog
    from imagegen.model.image import ImageSpec
    from imagegen.model.release import Release
    from imagegen.resolver.refusal import Alternative

MOST_TAG = 127
MOST_BUILDS = 8


def answer_to(
    constraints: Mapping[str, str], catalog: Catalog, *, allow_unknown: bool = False
) -> ImageSpec | Refusal:
    """Find the image for the constraints, or why there is none and what is nearest to them."""
    constraints = meant(constraints, catalog)
    spec = _found(constraints, catalog.buildable, allow_unknown)
    if spec is not None:
        return spec
    instead = tuple(_alternatives(constraints, catalog.buildable, allow_unknown))
    beyond = _found(constraints, catalog, allow_unknown)
    if beyond is not None:
        unbuilt = Unbuilt(pinned(beyond), tuple(_obstacles(beyond, catalog)))
        return Refusal((), (), instead, allow_unknown, unbuilt)
    from imagegen.resolver.conflict import conflicts_of  # most requests have an answer

    space, cell = asked_cell(constraints, catalog, allow_unknown=allow_unknown)
    conflicts = conflicts_of(space, constraints_of(cell), allow_unknown=allow_unknown)
    unknown = tuple(unknown_values(constraints, catalog))
    return Refusal(unknown, conflicts, instead, allow_unknown)


def _found(
    constraints: Mapping[str, str], catalog: Catalog, allow_unknown: bool
) -> ImageSpec | None:
    """Find the image for the constraints, None if there is none.

    An image whose frameworks all compute on its GPU comes before one where some lack a toolkit,
    that before one for the CPU, and last comes one for a GPU where none has code for it.
    """
    space, asked = _asked(constraints, catalog, allow_unknown=allow_unknown)
    poorer: ImageSpec | None = None
    for wants in _readings(space, asked):
        if poorer and _has_gpu_code(poorer) and wants[-1].asked_by == WITHOUT_GPU:
            return poorer
        cell = _completed(space, replace(asked, wants=wants))
        if not _fit(space, cell):
            continue
        spec = resolve_cell(cell, catalog, space)
        warnings = (*spec.warnings, *_left_out(cell))
        spec = replace(spec, tag=_tag(spec, constraints, catalog), warnings=warnings)
        if not _lacks_on_gpu(spec, catalog):
            return spec
        if poorer is None or not _has_gpu_code(poorer):
            poorer = spec
    return poorer


def _lacks_on_gpu(spec: ImageSpec, catalog: Catalog) -> bool:
    """Say whether some component of a GPU image lacks what it needs to compute on the GPU."""
    names = {pin.component for pin in spec.pins}
    return spec.given.get(DEVICE) == GPU and any(
        not names.issuperset(catalog.components[name].request.gpu_libraries) for name in names
    )


def _has_gpu_code(spec: ImageSpec) -> bool:
    """Say whether something of an image is made for a GPU: a toolkit, or a wheel with its own."""
    return any(pin.release.facts.get("device") == GPU for pin in spec.pins)


def _readings(space: Space, cell: Cell) -> Iterator[tuple[Want, ...]]:
    """List what a request may mean: as it stands, by builds with toolkits of their own, on a CPU.

    A CPU is meant last, and only where nobody names a GPU or what only a GPU has use for.
    """
    yield cell.wants
    yield from _with_own_toolkit(space, cell)
    if not names_a_gpu(space, cell) and DEVICE not in {want.component for want in cell.wants}:
        yield (*cell.wants, Want(DEVICE, CPU, WITHOUT_GPU))


def _fit(space: Space, cell: Cell) -> bool:
    return fits(space, constraints_of(cell), allow_unknown=cell.allow_unknown)


def asked_cell(
    constraints: Mapping[str, str], catalog: Catalog, *, allow_unknown: bool = False
) -> tuple[Space, Cell]:
    """Make the cell of a request with all that it needs and does not name, and its candidates."""
    space, cell = _asked(constraints, catalog, allow_unknown=allow_unknown)
    return space, _completed(space, cell)


def _asked(
    constraints: Mapping[str, str], catalog: Catalog, *, allow_unknown: bool
) -> tuple[Space, Cell]:
    cell = replace(as_cell(meant(constraints, catalog), catalog), allow_unknown=allow_unknown)
    return space_of(catalog, cell.wants), cell


def _completed(space: Space, cell: Cell) -> Cell:
    cell = _without_what_no_os_has(space, cell)
    return replace(cell, wants=with_defaults(space, cell))


def _with_own_toolkit(space: Space, cell: Cell) -> Iterator[tuple[Want, ...]]:
    """Take builds with a toolkit of their own by their full names, where nobody asks for one.

    The image may then have the toolkit of another framework.
    """
    components = space.catalog.components.values()
    frameworks = {name for one in components for name in one.one_of}
    about: dict[str, list[Want]] = {}
    for want in cell.wants:
        if want.asked_by == THE_REQUEST:
            about.setdefault(space.provider(want.component) or want.component, []).append(want)
    if space.catalog.with_role(TOOLKIT) in about or len(about.keys() & frameworks) < 2:
        return
    for name in sorted(about.keys() & frameworks):
        if any("+" in want.constraint for want in about[name]):
            continue
        rows = domains_of(space, about[name], allow_unknown=cell.allow_unknown).rows(name)
        rest = tuple(want for want in cell.wants if want.component != name)
        for version in [*dict.fromkeys(row.version for row in rows if row.built_for)][:MOST_BUILDS]:
            yield (*rest, Want(name, version, THE_REQUEST))


def _obstacles(spec: ImageSpec, catalog: Catalog) -> Iterator[str]:
    """List why no template can build an image."""
    if spec.os.obstacle:
        yield spec.os.obstacle
    for pin in spec.pins:
        if not catalog.components[pin.component].installs_one(pin.release):
            yield f"no template installs {pin.release.name}: {_way(pin.release)}"


def _way(release: Release) -> str:
    return f"it needs {', '.join(release.ways)}" if release.ways else "no file of it is known"


def _alternatives(
    constraints: Mapping[str, str], catalog: Catalog, allow_unknown: bool
) -> list[Alternative]:
    from imagegen.request.alternatives import Alternatives  # most requests have an answer

    drivers = {constraints[DRIVER], *_driver_floors(catalog)} if DRIVER in constraints else ()
    space = Space(catalog, sorted(drivers, key=constraint.version_key, reverse=True))

    def read(some: Mapping[str, str]) -> tuple[Want, ...]:
        cell = replace(as_cell(some, catalog), allow_unknown=allow_unknown)
        return constraints_of(_completed(space, cell))

    def answer(some: Mapping[str, str]) -> tuple[dict[str, str], ImageSpec] | None:
        spec = _found(meant(some, catalog), catalog, allow_unknown)
        return None if spec is None else (pinned(spec), spec)

    finder = Alternatives(catalog, space, read, answer, allow_unknown=allow_unknown)
    return finder.nearest(constraints)


def _driver_floors(catalog: Catalog) -> set[str]:
    """List the lowest drivers that any release names."""
    rows = [row for one in catalog.components.values() for row in one.releases]
    found = {text.removeprefix(">=") for row in rows for text in row.limits.get(DRIVER, ())}
    return {text for text in found if constraint.is_version(text)}


def _without_what_no_os_has(space: Space, cell: Cell) -> Cell:
    """Leave out those parts of every image that have no known release for the OS asked for."""
    system = [want for want in cell.wants if want.component == OS]
    unknown = [
        want
        for want in cell.wants
        if want.asked_by == EVERY_IMAGE and system and not fits(space, [*system, want])
    ]
    if not unknown or not fits(space, system):
        return cell
    why = f"no release of it is known for {system[0].constraint}"
    omitted = (*cell.omitted, *(Omission(want.component, why) for want in unknown))
    return replace(cell, wants=tuple(w for w in cell.wants if w not in unknown), omitted=omitted)


def _left_out(cell: Cell) -> list[str]:
    return [
        f"{one.component} is left out: {one.reason} (rule parts-of-every-image)"
        for one in cell.omitted
        if one.reason != THE_REQUEST
    ]


def _tag(spec: ImageSpec, constraints: Mapping[str, str], catalog: Catalog) -> str:
    checks, keys = catalog.with_role(CHECKS), catalog.request_keys
    asked = [p for p in spec.pins if p.component in constraints and p.component != checks]
    meant = {name for key, (name, _) in keys.items() if key in constraints}
    asked += [p for p in spec.pins if p.component in meant - constraints.keys()]
    parts = [spec.os.id, *(f"{pin.component}{pin.version}" for pin in asked)]
    parts += [spec.given[name] for name in ("device", "flavour") if name in constraints]
    parts += [f"no-{omission.component}" for omission in spec.cell.omitted]
    text = "-".join(part for part in parts if part).replace("+", "-")
    if len(text) > MOST_TAG:
        text = f"{text[: MOST_TAG - 13]}-{spec.cell.name}"
    return f"imagegen/{MATRIX}:{text}"


def pinned(spec: ImageSpec) -> dict[str, str]:
    """Map all that the answer decides to values: the OS, components, and such as torchvision."""
    return {"os": spec.os.id} | {pin.component: pin.version for pin in spec.pins} | dict(spec.given)


def may_be(cell: Cell, spec: ImageSpec, catalog: Catalog) -> bool:
    """Say whether a cell can have the same pins as an image.

    It cannot if it wants a component that the image lacks, or another version.
    """
    for want in cell.wants:
        pin = spec.pin(want.component)
        if want.component == "os":
            if want.constraint not in (spec.os.id, constraint.ANY):
                return False
        elif pin is None:
            if want.component in catalog.components:
                return False
        elif constraint.is_version(want.constraint) and not any(
            constraint.matches(want.constraint, name)
            for name in (pin.version, *pin.release.aliases)
        ):
            return False
    return True


def same_image(spec: ImageSpec, others: Sequence[ImageSpec]) -> ImageSpec | None:
    """Find a cell with exactly the same pins, so that an existing image answers the request."""
    return next((other for other in others if _pins(other) == _pins(spec)), None)


def _pins(spec: ImageSpec) -> tuple[str, frozenset[tuple[str, str, str]]]:
    rows = {(pin.component, pin.version, pin.release.variant) for pin in spec.pins}
    differ = {FLAVOUR, *(wheel for pin in spec.pins for wheel in pin.release.wheels)}
    rows |= {(name, value, "") for name, value in spec.given.items() if name in differ}
    return spec.os.id, frozenset(rows)
