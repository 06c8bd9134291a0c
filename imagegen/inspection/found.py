"""Find the components of an image of any maker, in the words of the catalog.

What shows a component is data: `found_by` in its component.yaml. An image of this tool also says
itself what it has; that counts where the packages agree with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from imagegen.inspection.clues import plain_name, sightings_of, wheels_of_users
from imagegen.model import constraint
from imagegen.model.catalog import TOOLKIT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from imagegen.engine.images.contents import ImageContents
    from imagegen.engine.images.inventory import Inventory
    from imagegen.inspection.clues import Sighting
    from imagegen.model.catalog import Catalog, Component
    from imagegen.model.release import OsRelease, Release


@dataclass(frozen=True)
class Found:
    """A component of an image, or the value of a release such as torchvision.

    `version` is what the image has, `evidence` what shows it. `release` is the same release of the
    catalog, or the nearest one where it has none (`known` is false); None for a value, or where
    the catalog has no release at all. `variant` is that of the release, where the image shows it.
    `doubt` says what contradicts it.
    """

    name: str
    version: str
    evidence: str
    release: Release | None = None
    known: bool = True
    variant: str = ""
    doubt: str = ""


@dataclass(frozen=True)
class FoundImage:
    """What is in an image: its OS, its components, and packages that belong to none of them.

    `os` is the nearest OS of the catalog, None where it has none of this distribution; `os_name` is
    what the image says itself.
    """

    os: OsRelease | None
    os_name: str
    os_known: bool
    components: tuple[Found, ...]
    uncovered: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()

    def of(self, name: str) -> Found | None:
        """Return a component by its name; None where the image lacks it."""
        return next((one for one in self.components if one.name == name), None)


@dataclass(frozen=True)
class _Around:
    """What an image has around a component, and the name of the GPU toolkit in facts."""

    os: OsRelease | None
    toolkit: str


def find_components(image: Inventory, catalog: Catalog) -> FoundImage:
    """Map what an engine reported of an image to the catalog."""
    contents = image.contents
    os, os_name, os_known = _os(contents.os, catalog)
    sightings = {
        name: sightings_of(component, image) for name, component in catalog.components.items()
    }
    promised = contents.promise.get("components", {})
    near = _Around(os, catalog.with_role(TOOLKIT))
    found: dict[str, Found] = {}
    for name, component in catalog.components.items():
        one = _component(component, sightings[name], promised.get(name), near)
        if one is not None:
            found[name] = one
    parts = _parts_of_others(found, catalog, promised)
    own = tuple(one for name, one in found.items() if name not in parts)
    every = [one for each in sightings.values() for one in each]
    uncovered = tuple(_uncovered(contents, own, every))
    return FoundImage(os, os_name, os_known, (*own, *_values(every)), uncovered, contents.tools)


def _os(said: Mapping[str, str], catalog: Catalog) -> tuple[OsRelease | None, str, bool]:
    """Find the OS of an image; the third result says whether the catalog has exactly this one."""
    name, version = said.get("ID", ""), said.get("VERSION_ID", "")
    shown = " ".join(filter(None, [name, version])) or "unknown"
    family = [one for one in catalog.os.values() if one.os_id.casefold() == name.casefold()]
    for one in family:
        if f"{version}.".startswith(f"{one.version_id}."):
            return one, shown, True
    if not family or not constraint.is_version(version):
        return None, shown, False
    near = nearest_version(version, [one.version_id for one in family])
    return next(one for one in family if one.version_id == near), shown, False


def nearest_version(version: str, known: Iterable[str]) -> str:
    """Choose the nearest version: that with the most equal parts in front, then the next one."""
    asked = constraint.version_key(version).release

    def distance(text: str) -> tuple[object, ...]:
        have = constraint.version_key(text).release
        same = next(
            (at for at, (a, b) in enumerate(zip(asked, have, strict=False)) if a != b),
            min(len(asked), len(have)),
        )
        here, there = (*asked, 0)[same : same + 1], (*have, 0)[same : same + 1]
        gap = abs((here or (0,))[0] - (there or (0,))[0])
        return -same, gap, [-part for part in have]

    return min(known, key=distance)


def _component(
    component: Component,
    sightings: Sequence[Sighting],
    promise: Mapping[str, str] | None,
    near: _Around,
) -> Found | None:
    """Weigh what shows a component: what was measured wins over what the image says of itself."""
    own = [one for one in sightings if not one.value]
    said = _promised(component, promise) if promise else None
    if not own:
        evidence = f"{component.name} in image.json"
        return _as_promised(said, said.version, evidence) if said else None
    first = _sharpest(own)
    if said and (not first.version or _is(said, first.version)):
        return _as_promised(said, first.version or said.version, first.evidence)
    release, known = _release_of(component, first, near)
    variant = release.variant if release and _shows_variant(release, first) else ""
    doubts = [f"image.json says {said.version}"] if said else []
    doubts += [f"also {one.evidence}" for one in own if _differs(one, first)]
    doubt = "; ".join(dict.fromkeys(doubts))
    return Found(component.name, first.version, first.evidence, release, known, variant, doubt)


def _as_promised(release: Release, version: str, evidence: str) -> Found:
    return Found(release.component, version, evidence, release, variant=release.variant)


def _shows_variant(release: Release, seen: Sighting) -> bool:
    """Say whether a sighting shows the variant of a release too.

    The clue says it, the version in the image names it (`2.10.3-1+cuda11.4`), or only a release of
    this variant installs such a wheel.
    """
    named = release.variant in seen.evidence.replace("+", " ").split()
    return release.variant == seen.variant or named or _build_of(release, seen)


def _promised(component: Component, promise: Mapping[str, str]) -> Release | None:
    wanted = (promise.get("version"), promise.get("variant"))
    return next((one for one in component.releases if (one.version, one.variant) == wanted), None)


def _sharpest(sightings: Sequence[Sighting]) -> Sighting:
    """Return the strongest sighting, with a longer version of the same release if another has one.

    A sighting without a version is taken only where there is no other.
    """
    first = next((one for one in sightings if one.version), sightings[0])
    longer = [
        one.version
        for one in sightings
        if one.version.startswith(f"{first.version}.") and first.version
    ]
    return first._replace(version=longer[0]) if longer else first


def _differs(one: Sighting, first: Sighting) -> bool:
    pair = f"{_public(one)}.", f"{_public(first)}."
    return bool(one.version) and not (pair[0].startswith(pair[1]) or pair[1].startswith(pair[0]))


def _public(one: Sighting) -> str:
    return one.version.partition("+")[0]


def _is(release: Release, version: str) -> bool:
    """Say whether a release is this version, or one of which less is known."""
    if not constraint.is_version(version):
        return False
    local = "+" in version
    names = (release.version, *release.aliases)
    if not local:
        return any(
            constraint.is_version(name) and constraint.matches(version, name) for name in names
        )
    return release.version == version


def _release_of(component: Component, seen: Sighting, near: _Around) -> tuple[Release | None, bool]:
    """Find the release of a sighting, else the nearest; and whether it is exactly that one."""
    releases = [one for one in component.releases if seen.variant in ("", one.variant)]
    releases = releases or list(component.releases)
    if not releases or not constraint.is_version(seen.version):
        return None, not seen.version
    same = [one for one in releases if _is(one, seen.version)]
    same = same or [one for one in releases if _is(one, _public(seen))]
    if not same:
        versions = {one.version.partition("+")[0] for one in releases}
        other = nearest_version(seen.version, filter(constraint.is_version, sorted(versions)))
        same = [one for one in releases if one.version.partition("+")[0] == other]
    best = min(same, key=lambda one: _strangeness(one, seen, near))
    return best, _is(best, seen.version) or _build_of(best, seen)


def _build_of(release: Release, seen: Sighting) -> bool:
    """Say whether an index has the build of a release under the version that was seen."""
    return release.wheels.get(seen.package) == seen.version


def _strangeness(release: Release, seen: Sighting, near: _Around) -> tuple[object, ...]:
    """Order the releases of one version: the one that makes what was seen comes first."""
    packages = {**release.apt, **release.wheels}
    systems = release.requires.get("os", ())
    by_default = release.facts.get("pypi_cuda")
    return (
        release.version != seen.version,
        not _shows_variant(release, seen),
        release.wheels.get(seen.package, seen.version) != seen.version,
        seen.package not in packages,
        bool(systems) and (near.os is None or near.os.id not in systems),
        not by_default or by_default != release.facts.get(near.toolkit),
        release.rank,
    )


def _parts_of_others(
    found: Mapping[str, Found], catalog: Catalog, promised: Mapping[str, object]
) -> set[str]:
    """List the components whose wheels came with the wheel of another one, of that release."""
    parts: set[str] = set()
    for owner in found.values():
        for name in catalog.components[owner.name].pip_pins.of:
            part = found.get(name)
            if part is None or name in promised or not part.evidence.startswith("wheel "):
                continue
            own = str(owner.release.facts.get(name) or "") if owner.release else ""
            if not own or constraint.matches(own, part.version):
                parts.add(name)
    return parts


def _values(sightings: Iterable[Sighting]) -> Iterator[Found]:
    """List the values of releases, such as torchvision, each by its first sighting."""
    seen: dict[str, Sighting] = {}
    for one in sightings:
        if one.value and one.version:
            seen.setdefault(one.value, one)
    for name, one in seen.items():
        yield Found(name, _public(one), one.evidence)


PACKAGING = ("pip", "setuptools", "wheel", "uv")
"""What installs the others, and says nothing about an image."""


def _uncovered(
    contents: ImageContents, found: Sequence[Found], sightings: Sequence[Sighting]
) -> Iterator[str]:
    """List what somebody put into the image and no component covers, as `name version`.

    Where packages say that somebody asked for them by name, only these are listed.
    """
    covered = {one.package for one in sightings}
    covered |= {wheel for one in found if one.release for wheel in one.release.wheels}
    wheels = [one for one in wheels_of_users(contents) if plain_name(one.name) not in covered]
    named = [one for one in wheels if one.path in contents.requested] or wheels
    debs = [
        one
        for one in contents.of_kind("deb")
        if one.name.startswith("python3-") and one.name not in {*covered, *contents.automatic}
    ]
    condas = [one for one in contents.of_kind("conda") if one.name not in covered]
    deb_parts = {name for one in found if one.release for name in one.release.apt}
    for package in [*named, *condas, *(one for one in debs if one.name not in deb_parts)]:
        if plain_name(package.name).removeprefix("python3-") not in PACKAGING:
            yield f"{package.name} {package.version}"
