"""Find the request that is nearest to an image: what it has, as far as the catalog can answer.

What is found is asked for, one thing after the other, in the order of its weight: frameworks, the
OS, the toolkit, Python, the rest. What no longer fits with the things before it is relaxed step by
step: another build of the version, a shorter version, the nearest versions, any, none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from imagegen.inspection.found import nearest_version
from imagegen.model import constraint
from imagegen.model.catalog import TOOLKIT
from imagegen.request.answer import asked_cell
from imagegen.resolver.blame import fits
from imagegen.resolver.candidates import OS
from imagegen.resolver.conflict import conflict_of
from imagegen.resolver.refusal import EVERY_IMAGE, THE_REQUEST
from imagegen.resolver.resolve import constraints_of, space_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from imagegen.inspection.found import Found, FoundImage
    from imagegen.model.catalog import Catalog
    from imagegen.model.image import ImageSpec

MOST_NEIGHBOURS = 8
"""How many other versions are tried before any version."""

DEVICE, GPU = "device", "gpu"


@dataclass(frozen=True)
class Wanted:
    """One thing of an image, and the constraints for it, the nearest to the image first."""

    name: str
    had: str
    forms: tuple[Mapping[str, str], ...]


@dataclass(frozen=True)
class NearestRequest:
    """The request that is nearest to an image, and for each key that gave way the reason."""

    constraints: Mapping[str, str]
    reasons: Mapping[str, str]

    @property
    def arguments(self) -> tuple[str, ...]:
        """Return the request as `KEY=VALUE` arguments."""
        return tuple(f"{name}={value}" for name, value in self.constraints.items())


def nearest_request(
    image: FoundImage, given: Mapping[str, str], catalog: Catalog, *, allow_unknown: bool = False
) -> NearestRequest:
    """Choose constraints for what is in an image; `given` are the user's, which never give way."""
    chosen, reasons = dict(given), {}
    for wanted in wanted_of(image, given, catalog):
        for form in wanted.forms:
            tried = {**chosen, **{name: form[name] for name in form if name not in chosen}}
            if _fits(tried, catalog, allow_unknown):
                chosen = tried
                break
            if wanted.name not in reasons:
                reasons[wanted.name] = _why(tried, catalog, allow_unknown)
    return NearestRequest(chosen, reasons)


def _fits(constraints: Mapping[str, str], catalog: Catalog, allow_unknown: bool) -> bool:
    space, cell = asked_cell(constraints, catalog, allow_unknown=allow_unknown)
    return fits(space, constraints_of(cell), allow_unknown=allow_unknown)


def _why(constraints: Mapping[str, str], catalog: Catalog, allow_unknown: bool) -> str:
    _, cell = asked_cell(constraints, catalog, allow_unknown=allow_unknown)
    wants = constraints_of(cell)
    return conflict_of(space_of(catalog, wants), wants, allow_unknown=allow_unknown).sentence


def wanted_of(image: FoundImage, given: Mapping[str, str], catalog: Catalog) -> Iterator[Wanted]:
    """List what is found, the weightiest first, without what the user decides."""
    decided = {catalog.request_keys.get(name, (name,))[0] for name in given}
    frameworks, others = _by_weight(image, catalog)
    for one in frameworks:
        if one.name not in decided:
            yield Wanted(one.name, one.version, tuple(_forms(one, catalog)))
    if any(_device(one) == GPU for one in image.components):
        yield Wanted(DEVICE, GPU, ({DEVICE: GPU}, {}))
    if OS not in decided and image.os is not None:
        yield Wanted(OS, image.os_name, tuple(_os_forms(image, catalog)))
    for one in others:
        if one.name not in decided:
            yield Wanted(one.name, one.version, tuple(_forms(one, catalog)))
    for one in image.components:
        if one.name in catalog.request_values and one.name not in decided:
            yield Wanted(one.name, one.version, ({one.name: one.version}, {}))
    if image.of(catalog.with_role(TOOLKIT)) and "nvcc" in _names(image.tools):
        yield Wanted("flavour", "devel", ({"flavour": "devel"}, {}))


def _names(paths: Sequence[str]) -> set[str]:
    return {path.rpartition("/")[2] for path in paths}


def _by_weight(image: FoundImage, catalog: Catalog) -> tuple[list[Found], list[Found]]:
    """Return the frameworks of an image, and its other components, each in order of the search."""
    order = catalog.search_order
    last = 1 + max(order.values(), default=0)
    known = [one for one in image.components if one.name in catalog.components]
    known.sort(key=lambda one: (order.get(one.name, last), one.name))
    frameworks = {name for one in catalog.components.values() for name in one.one_of}
    return (
        [one for one in known if one.name in frameworks],
        [one for one in known if one.name not in frameworks],
    )


def _forms(found: Found, catalog: Catalog) -> Iterator[dict[str, str]]:
    """List what to ask for a component: exactly its release, then what is less and less near."""
    name, release = found.name, found.release
    if release is None:
        yield {name: constraint.ANY}
        yield {}
        return
    version, variant = release.version, found.variant
    exactly = f"{version} {variant}" if constraint.is_variant(variant) else version
    if _device(found):
        yield {name: exactly, DEVICE: _device(found)}
    yield {name: exactly}
    yield {name: version}
    public = version.partition("+")[0]
    parts = public.split(".")
    shorter = [".".join(parts[:end]) for end in range(len(parts), 1, -1)]
    yield from ({name: one} for one in shorter)
    yield from ({name: one} for one in _neighbours(public, name, catalog))
    if constraint.is_variant(variant):
        yield {name: variant}
    yield {name: constraint.ANY}
    yield {}


def _device(found: Found) -> str:
    """Return what the release of a component computes on; empty where it does not matter."""
    devices = found.release.requires.get(DEVICE, ()) if found.release else ()
    return devices[0] if len(devices) == 1 and devices[0] != constraint.ANY else ""


def _neighbours(version: str, name: str, catalog: Catalog) -> Iterator[str]:
    """List the nearest other versions of a component."""
    releases = catalog.components[name].releases
    known = {one.version.partition("+")[0] for one in releases} - {version}
    versions = sorted(filter(constraint.is_version, known))
    for _ in range(min(MOST_NEIGHBOURS, len(versions))):
        near = nearest_version(version, versions)
        versions.remove(near)
        yield near


def _os_forms(image: FoundImage, catalog: Catalog) -> Iterator[dict[str, str]]:
    """List the OS of an image, then the other ones of its distribution, then none in particular."""
    if image.os is None:
        return
    yield {OS: image.os.id}
    others = {
        one.version_id: one.id
        for one in catalog.os.values()
        if one.os_id == image.os.os_id and one.id != image.os.id
    }
    while others:
        near = nearest_version(image.os.version_id, others)
        yield {OS: others.pop(near)}
    yield {}


@dataclass(frozen=True)
class Row:
    """A component in the image and in the answer, and in words what differs (empty: nothing)."""

    component: str
    had: str
    gets: str
    differs: str


def compare(
    image: FoundImage, spec: ImageSpec, nearest: NearestRequest, given: Mapping[str, str]
) -> tuple[Row, ...]:
    """Compare an image with the answer to its request: the OS, then each component of either."""
    os_differs = "" if image.os and image.os.id == spec.os.id else "version"
    os_differs = os_differs if image.os_known else "version: not in the catalog"
    rows = [Row(OS, image.os_name, spec.os.id, _with_reason(os_differs, OS, nearest, given))]
    pins = {pin.component: pin for pin in spec.pins}
    values = [one for one in image.components if one.name in spec.given]
    found = {one.name: one for one in image.components if one not in values}
    for name in sorted({*pins, *found}):
        one, pin = found.get(name), pins.get(name)
        gets = _version(pin.version, pin.release.variant) if pin else ""
        if one is None:
            rows.append(Row(name, "", gets, _added(name, spec, given)))
        elif pin is None:
            why = _with_reason("left out", name, nearest, given)
            rows.append(Row(name, one.version or "?", "", why))
        else:
            differs = _difference(one, pin.version, pin.release.variant)
            why = _with_reason(differs, name, nearest, given)
            rows.append(Row(name, _as_found(one), gets, why))
    if DEVICE in nearest.reasons:
        gets = spec.given.get(DEVICE, "cpu")
        rows.append(Row(DEVICE, GPU, gets, nearest.reasons[DEVICE]))
    for one in values:
        same = constraint.matches(one.version, spec.given[one.name])
        why = _with_reason("" if same else "version", one.name, nearest, given)
        rows.append(Row(one.name, one.version, spec.given[one.name], why))
    return tuple(rows)


def _version(version: str, variant: str) -> str:
    return f"{version} ({variant})" if variant else version


def _as_found(found: Found) -> str:
    version = found.version or "?"
    return _version(version, found.variant)


def _difference(found: Found, version: str, variant: str) -> str:
    release = found.release
    if not found.version:
        return "the image does not say its version"
    if release is None or release.version.partition("+")[0] != version.partition("+")[0]:
        return "version"
    if not found.known:
        return "version: not in the catalog"
    same = release.version == version and found.variant in ("", variant)
    return "" if same else "build"


def _added(name: str, spec: ImageSpec, given: Mapping[str, str]) -> str:
    pin = spec.pin(name)
    askers = [one for one in pin.via if one != THE_REQUEST] if pin and name not in given else []
    if not askers:
        return "added: asked for"
    return f"added: {askers[0]} {'has' if askers[0] == EVERY_IMAGE else 'needs'} it"


def _with_reason(differs: str, name: str, nearest: NearestRequest, given: Mapping[str, str]) -> str:
    if not differs:
        return ""
    if name in given:
        return f"{differs}: asked for"
    return f"{differs}: {nearest.reasons[name]}" if name in nearest.reasons else differs
