"""Find the components of an image of any maker, in the words of the catalog.

What shows a component is data: `found_by` in its component.yaml. An image of this tool also says
itself what it has; that counts where the packages agree with it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

from imagegen.model import constraint
from imagegen.model.recipe import OWN_FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from imagegen.engine.images.contents import ImageContents, Package
    from imagegen.engine.images.inventory import Inventory
    from imagegen.model.catalog import Catalog, Clue, Component
    from imagegen.model.release import OsRelease, Release

_USUAL = {
    "wheel": re.compile(r"^(.+)$"),
    "conda": re.compile(r"^(.+)$"),
    "deb": re.compile(r"^(?:\d+:)?(\d+(?:\.\d+)*)"),
    "env": re.compile(r"^v?(\d+(?:\.\d+)+)"),
    "library": re.compile(r"\.so\.(\d+\.\d+(?:\.\d+)*)$"),
    "folder": re.compile(r"(\d+(?:\.\d+)+)"),
}
"""Where the version stands in what a clue of a kind finds."""


class Sighting(NamedTuple):
    """What one clue found: a version (empty where it shows none), and where."""

    version: str
    evidence: str
    package: str = ""
    variant: str = ""
    value: str = ""


@dataclass(frozen=True)
class Found:
    """A component of an image, or the value of a release such as torchvision.

    `version` is what the image has, `evidence` what shows it. `release` is the same release of the
    catalog, or the nearest one where it has none (`known` is false); None for a value, or where
    the catalog has no release at all. `doubt` says what contradicts it.
    """

    name: str
    version: str
    evidence: str
    release: Release | None = None
    known: bool = True
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


def find_components(image: Inventory, catalog: Catalog) -> FoundImage:
    """Map what an engine reported of an image to the catalog."""
    contents = image.contents
    os, os_name, os_known = _os(contents.os, catalog)
    sightings = {
        name: _sightings(component, image) for name, component in catalog.components.items()
    }
    promised = contents.promise.get("components", {})
    found: dict[str, Found] = {}
    for name, component in catalog.components.items():
        one = _component(component, sightings[name], promised.get(name), os)
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


def _sightings(component: Component, image: Inventory) -> list[Sighting]:
    return [one for clue in component.found_by for one in _seen(clue, image)]


def _seen(clue: Clue, image: Inventory) -> Iterator[Sighting]:
    """List what one clue finds, each thing once."""
    pattern = re.compile(clue.version) if clue.version else _USUAL[clue.kind]
    for name, text, evidence in dict.fromkeys(_things(clue, image)):
        match = pattern.search(text)
        yield Sighting(match[1] if match else "", evidence, name, clue.variant, clue.value)


def _things(clue: Clue, image: Inventory) -> Iterator[tuple[str, str, str]]:
    """List what the glob of a clue matches: name, the text with the version, evidence."""
    contents = image.contents
    if clue.kind == "env":
        for name, value in image.env.items():
            if fnmatchcase(name, clue.name) and value:
                yield name, value, f"{name}={value}"
    elif clue.kind == "library":
        for path in contents.libraries:
            if fnmatchcase(path.rpartition("/")[2], clue.name):
                yield path, path, path
    elif clue.kind == "folder":
        for package in _wheels(contents):
            if fnmatchcase(package.path, clue.name):
                yield "", package.path, package.path.rpartition("/")[0]
    else:
        wanted = _plain(clue.name) if clue.kind == "wheel" else clue.name
        kind = {"wheel": "pypi"}.get(clue.kind, clue.kind)
        of_kind = _wheels(contents) if kind == "pypi" else contents.of_kind(kind)
        for package in of_kind:
            name = _plain(package.name) if clue.kind == "wheel" else package.name
            if fnmatchcase(name, wanted):
                folder = package.path.rpartition("/")[0]
                where = f" in {folder}" if folder else ""
                yield name, package.version, f"{clue.kind} {name} {package.version}{where}"


def _plain(name: str) -> str:
    """Write the name of a Python package as the index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _wheels(contents: ImageContents) -> Iterator[Package]:
    """List the wheels of users, without those that belong to `validate`."""
    return (one for one in contents.of_kind("pypi") if not one.path.startswith(OWN_FOLDER))


def _component(
    component: Component,
    sightings: Sequence[Sighting],
    promise: Mapping[str, str] | None,
    os: OsRelease | None,
) -> Found | None:
    """Weigh what shows a component: what was measured wins over what the image says of itself."""
    own = [one for one in sightings if not one.value]
    said = _promised(component, promise) if promise else None
    if not own:
        evidence = f"{component.name} in image.json"
        return Found(component.name, said.version, evidence, said) if said else None
    first = _sharpest(own)
    if said and (not first.version or _is(said, first.version)):
        return Found(component.name, first.version or said.version, first.evidence, said)
    release, known = _release_of(component, first, os)
    doubts = [f"image.json says {said.version}"] if said else []
    doubts += [f"also {one.evidence}" for one in own if _differs(one, first)]
    doubt = "; ".join(dict.fromkeys(doubts))
    return Found(component.name, first.version, first.evidence, release, known, doubt)


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


def _release_of(
    component: Component, seen: Sighting, os: OsRelease | None
) -> tuple[Release | None, bool]:
    """Find the release of a sighting, else the nearest; and whether it is exactly that one."""
    releases = [one for one in component.releases if seen.variant in ("", one.variant)]
    releases = releases or list(component.releases)
    if not releases or not constraint.is_version(seen.version):
        return None, not seen.version
    same = [one for one in releases if _is(one, seen.version)]
    same = same or [one for one in releases if _is(one, _public(seen))]
    if not same:
        versions = {one.version.partition("+")[0] for one in releases}
        near = nearest_version(seen.version, filter(constraint.is_version, sorted(versions)))
        same = [one for one in releases if one.version.partition("+")[0] == near]
    best = min(same, key=lambda one: _strangeness(one, seen, os))
    return best, _is(best, seen.version) or _build_of(best, seen)


def _build_of(release: Release, seen: Sighting) -> bool:
    """Say whether an index has the build of a release under the version that was seen."""
    return seen.version in release.wheels.values()


def _strangeness(release: Release, seen: Sighting, os: OsRelease | None) -> tuple[object, ...]:
    """Order the releases of one version: the one that makes what was seen comes first."""
    packages = {**release.apt, **release.wheels}
    systems = release.requires.get("os", ())
    by_default = release.facts.get("pypi_cuda")
    return (
        release.version != seen.version,
        release.wheels.get(seen.package, seen.version) != seen.version,
        seen.package not in packages,
        bool(systems) and (os is None or os.id not in systems),
        not by_default or by_default != release.facts.get("cuda"),
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
    wheels = [one for one in _wheels(contents) if _plain(one.name) not in covered]
    named = [one for one in wheels if one.path in contents.requested] or wheels
    debs = [
        one
        for one in contents.of_kind("deb")
        if one.name.startswith("python3-") and one.name not in {*covered, *contents.automatic}
    ]
    condas = [one for one in contents.of_kind("conda") if one.name not in covered]
    deb_parts = {name for one in found if one.release for name in one.release.apt}
    for package in [*named, *condas, *(one for one in debs if one.name not in deb_parts)]:
        if _plain(package.name).removeprefix("python3-") not in PACKAGING:
            yield f"{package.name} {package.version}"
