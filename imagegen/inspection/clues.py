"""Look for the clues of components in an image: packages, variables, libraries."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

from imagegen.model.recipe import OWN_FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from imagegen.engine.images.contents import ImageContents, Package
    from imagegen.engine.images.inventory import Inventory
    from imagegen.model.catalog import Clue, Component

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


def sightings_of(component: Component, image: Inventory) -> list[Sighting]:
    """List what shows a component in an image, the strongest first."""
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
        for package in wheels_of_users(contents):
            if fnmatchcase(package.path, clue.name):
                yield "", package.path, package.path.rpartition("/")[0]
    else:
        wanted = plain_name(clue.name) if clue.kind == "wheel" else clue.name
        kind = {"wheel": "pypi"}.get(clue.kind, clue.kind)
        of_kind = wheels_of_users(contents) if kind == "pypi" else contents.of_kind(kind)
        for package in of_kind:
            name = plain_name(package.name) if clue.kind == "wheel" else package.name
            if fnmatchcase(name, wanted):
                folder = package.path.rpartition("/")[0]
                where = f" in {folder}" if folder else ""
                yield name, package.version, f"{clue.kind} {name} {package.version}{where}"


def plain_name(name: str) -> str:
    """Write the name of a Python package as the index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def wheels_of_users(contents: ImageContents) -> Iterator[Package]:
    """List the wheels of users, without those that belong to `validate`."""
    return (one for one in contents.of_kind("pypi") if not one.path.startswith(OWN_FOLDER))
