"""Answer a request: pin one image for its constraints, or give the facts that collide."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from imagegen.model import constraint
from imagegen.model.catalog import CHECKS
from imagegen.model.cell import Cell, Omission, Want
from imagegen.request.arguments import (
    MATRIX,
    as_cell,
    meant,
    unknown_values,
)
from imagegen.resolver.alternatives import nearest
from imagegen.resolver.blame import fits
from imagegen.resolver.candidates import DRIVER, OS, Space
from imagegen.resolver.conflict import conflicts_of
from imagegen.resolver.refusal import (
    EVERY_IMAGE,
    THE_REQUEST,
    Refusal,
)
from imagegen.resolver.resolve import constraints_of, resolve_cell, space_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from imagegen.model.catalog import Catalog
    from imagegen.model.image import ImageSpec

FLAVOUR = "flavour"
MOST_TAG = 127


def answer_to(
    constraints: Mapping[str, str], catalog: Catalog, *, allow_unknown: bool = False
) -> ImageSpec | Refusal:
    """Find the image for the constraints, or why there is none and what is nearest to them."""
    constraints = meant(constraints, catalog)
    space, cell = asked_cell(constraints, catalog, allow_unknown=allow_unknown)
    wants = constraints_of(cell)
    if fits(space, wants, allow_unknown=allow_unknown):
        spec = resolve_cell(cell, catalog, space)
        warnings = (*spec.warnings, *_left_out(cell))
        return replace(spec, tag=_tag(spec, constraints, catalog), warnings=warnings)
    conflicts = conflicts_of(space, wants, allow_unknown=allow_unknown)
    conflict = conflicts[0]
    if any(want.component == DRIVER for want in conflict.wants):
        drivers = {*_drivers(wants), *driver_floors(catalog, conflict.wants)}
        space = Space(catalog, sorted(drivers, key=constraint.version_key, reverse=True))
    instead = nearest(space, wants, conflict.wants, allow_unknown=allow_unknown)
    unknown = tuple(unknown_values(constraints, catalog))
    return Refusal(unknown, conflicts, tuple(instead), catalog.request_keys, allow_unknown)


def asked_cell(
    constraints: Mapping[str, str], catalog: Catalog, *, allow_unknown: bool = False
) -> tuple[Space, Cell]:
    """Make the cell of a request with all that it needs and does not name, and its candidates."""
    asked = meant(constraints, catalog)
    cell = replace(as_cell(asked, catalog), allow_unknown=allow_unknown)
    space = space_of(catalog, cell.wants)
    cell = _without_what_no_os_has(space, cell)
    return space, replace(cell, wants=_by_default(space, cell))


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


def _by_default(space: Space, cell: Cell) -> tuple[Want, ...]:
    """Add to the constraints what they need and do not name, where it fits.

    This is one of several frameworks, and the libraries that a framework needs to compute on a GPU.
    """
    wants = cell.wants
    omitted = constraints_of(cell)[len(wants) :]

    def first_that_fits(extras: Sequence[tuple[Want, ...]]) -> tuple[Want, ...]:
        tried = ((*wants, *more) for more in extras)
        fitting = (
            one for one in tried if fits(space, (*one, *omitted), allow_unknown=cell.allow_unknown)
        )
        return next(fitting, wants)

    wants = first_that_fits(_frameworks(space, wants))
    return first_that_fits(_gpu_libraries(space.catalog, {*omitted, *wants}))


def _frameworks(space: Space, wants: Sequence[Want]) -> list[tuple[Want, ...]]:
    asked = {want.component for want in wants}
    for want in wants:
        component = space.catalog.components.get(want.component)
        if component is not None and component.one_of and not asked & set(component.one_of):
            asker = f"{want.component}, by default"
            return [(Want(name, constraint.ANY, asker),) for name in component.one_of]
    return []


def _gpu_libraries(catalog: Catalog, wants: AbstractSet[Want]) -> list[tuple[Want, ...]]:
    """List what a framework without a CUDA of its own needs to compute on a GPU."""
    asked = {want.component: want.constraint for want in wants}
    if asked.get("device") == "cpu":
        return []
    return [
        tuple(
            Want(library, constraint.ANY, f"{name}, by default")
            for library in framework.request.gpu_libraries
            if library not in asked
        )
        for name, framework in catalog.components.items()
        if framework.request.gpu_libraries and asked.get(name, constraint.NONE) != constraint.NONE
    ]


def _drivers(wants: Sequence[Want]) -> set[str]:
    return {want.constraint for want in wants if want.component == DRIVER}


def driver_floors(catalog: Catalog, wants: Sequence[Want]) -> set[str]:
    """List the lowest drivers that the rows of these components name."""
    rows = [
        release
        for want in wants
        if want.component in catalog.components
        for release in catalog.components[want.component].releases
    ]
    return {text.removeprefix(">=") for release in rows for text in release.limits.get(DRIVER, ())}


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
