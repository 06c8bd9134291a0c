"""Read, write and compare lock files, which list exactly what a matrix's images were made of.

The form of `matrices/<name>.lock.yaml` is:

matrix: cpu
systems:
  debian12:
    base: sha256:…                       # its root file system
    apt: {libc6: 2.36-9+deb12u13}        # of all stages of all cells; several, if they differ
    wheels: {pytest-8.3.5-py3-none-any.whl: 64 hexadecimal digits}
cells:
  debian12-none:
    system: debian12
    releases: {torch: 1.13.1}
    parts: {lightcc 3.1.1: 64 hexadecimal digits}
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, cast

from imagegen.config.payload import shown
from imagegen.config.schema_check import check_schema
from imagegen.config.yamlfile import load
from imagegen.errors import BuildError, ConfigError, Problem
from imagegen.model.image import base_of
from imagegen.sources.lock_form import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from imagegen.model.image import ImageSpec
    from imagegen.model.recipe import Recipe
    from imagegen.sources.lock_form import LockData

LINKS = "/mnt/links.html"
"""The path in a locked build of the page that lists its files."""

NOTHING = "-"
_HEAD = "# Written by `imagegen lock --matrix {}`. `imagegen build --locked` holds builds to it.\n"
_APT_PATTERN = re.compile(r"'(?P<name>[a-z0-9][a-z0-9.+-]*)=(?P<pattern>[^'=]*\*[^']*)'")
_PIP_CONFIG = re.compile(r"\bPIP_CONFIG_FILE=/dev/null ")
_PIP_PAGE = re.compile(r"--find-links (?:https?|file)://\S+")


@dataclass(frozen=True)
class SystemLock:
    """What all cells on one OS share.

    `apt` has the packages with their versions, of all stages; `wheels` has the files of wheels and
    source archives with their sha256.
    """

    base: str
    apt: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    wheels: Mapping[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Compute the digest of this part of the lock."""
        text = json.dumps(asdict(self), sort_keys=True)
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


@dataclass(frozen=True)
class CellLock:
    """The releases that one cell was resolved to; `parts` maps `name version` to a sha256."""

    system: str
    releases: Mapping[str, str]
    parts: Mapping[str, str]


@dataclass(frozen=True)
class Lock:
    """The content of one lock file."""

    file: str
    matrix: str
    systems: Mapping[str, SystemLock]
    cells: Mapping[str, CellLock]


@dataclass(frozen=True)
class Drift:
    """One thing that differs from the lock; `-` where one side has nothing."""

    component: str
    name: str
    locked: str
    found: str


def lock_path(matrix_file: str) -> Path:
    """Return the path of a matrix's lock, which is beside the matrix."""
    path = Path(matrix_file)
    return path.with_name(f"{path.stem}.lock.yaml")


def read_lock(path: Path) -> Lock:
    """Read a lock file.

    Raises ConfigError where there is none, or with every problem of the file.
    """
    if not path.is_file():
        text = f"there is no lock `{shown(path)}`"
        raise ConfigError.of(text, hint="build the cells, then `imagegen lock` writes it")
    document = load(path, shown(path))
    problems = check_schema(document, SCHEMA)
    if problems:
        raise ConfigError(*problems)
    data = cast("LockData", document.data)
    systems = {
        name: SystemLock(
            one["base"], {k: tuple(v.split()) for k, v in one["apt"].items()}, one["wheels"]
        )
        for name, one in data["systems"].items()
    }
    cells = {
        name: CellLock(one["system"], one["releases"], one["parts"])
        for name, one in data["cells"].items()
    }
    return Lock(document.file, data["matrix"], systems, cells)


def as_text(lock: Lock) -> str:
    """Write the text of a lock file: the same bytes for the same lock."""
    import yaml

    systems = {
        name: {
            "base": one.base,
            "apt": {package: " ".join(versions) for package, versions in one.apt.items()},
            "wheels": dict(one.wheels),
        }
        for name, one in lock.systems.items()
    }
    cells = {
        name: {"system": one.system, "releases": dict(one.releases), "parts": dict(one.parts)}
        for name, one in lock.cells.items()
    }
    data = {"matrix": lock.matrix, "systems": systems, "cells": cells}
    return _HEAD.format(lock.matrix) + yaml.safe_dump(data, width=1000)


def lock_entry(recipe: Recipe) -> CellLock:
    """Describe the current recipe of a cell in the form of a lock."""
    spec = recipe.spec
    return CellLock(
        base_of(spec).id,
        {pin.component: _release(pin.release.version, pin.release.variant) for pin in spec.pins},
        {str(part): part.sha256 for part in recipe.parts},
    )


def _release(version: str, variant: str) -> str:
    return f"{version} ({variant})" if variant else version


def lock_for(matrix_file: str, recipes: Sequence[Recipe]) -> Lock:
    """Read the lock of a matrix.

    Raises BuildError where these cells have changed since they were locked.
    """
    lock = read_lock(lock_path(matrix_file))
    found = drift_of_cells(lock, recipes)
    if found:
        raise drifted(lock, found)
    return lock


def drift_of_cells(lock: Lock, recipes: Iterable[Recipe]) -> list[Drift]:
    """Find how the current recipes of the cells differ from those that were locked."""
    found: list[Drift] = []
    for recipe in recipes:
        name = recipe.spec.cell.name
        locked, now = lock.cells.get(name), lock_entry(recipe)
        if locked is None or locked.system not in lock.systems:
            found.append(Drift(name, "the whole cell", NOTHING, "in the matrix"))
            continue
        found += _differing(name, locked.releases, now.releases)
        found += _differing(name, locked.parts, now.parts)
    return found


def _differing(cell: str, locked: Mapping[str, str], now: Mapping[str, str]) -> Iterator[Drift]:
    for name in sorted({*locked, *now}):
        before, after = locked.get(name, NOTHING), now.get(name, NOTHING)
        if before != after:
            yield Drift(cell, name, before, after)


def drift_of_packages(
    locked: SystemLock,
    listed: Mapping[str, Sequence[str]],
    installed: Mapping[str, str],
    owners: Mapping[str, str],
) -> list[Drift]:
    """Find locked versions that the archive no longer has and the base does not contain.

    A package that the base's own sources do not list may be from a source that a step adds: apt
    decides about it in that step.
    """
    return [
        Drift(owners.get(name, "dependency"), name, version, listed[name][0])
        for name, versions in locked.apt.items()
        for version in versions
        if listed.get(name) and version not in (*listed[name], installed.get(name))
    ]


def owners_of(specs: Iterable[ImageSpec]) -> dict[str, str]:
    """Map each package or project to the component whose row names it."""
    return {
        name: pin.component
        for spec in specs
        for pin in spec.pins
        for name in (*pin.release.build_apt, *pin.release.wheels, *pin.release.apt)
    }


def drifted(lock: Lock, found: Sequence[Drift]) -> BuildError:
    """Make the error that refuses a locked build."""
    rows = [("component", "what", "locked", "found")]
    rows += [(one.component, one.name, one.locked, one.found) for one in found]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    table = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    count = f"{len(found)} things" if len(found) > 1 else "one thing"
    build, again = (f"`imagegen {verb} -m {lock.matrix}`" for verb in ("build --force", "lock"))
    hint = f"to take what is there now: {build}, then {again}"
    return BuildError(Problem(f"{count} drifted", lock.file, evidence=tuple(table), hint=hint))


def exact(dockerfile: str, apt: Mapping[str, Sequence[str]]) -> str:
    """Make a Dockerfile install locked versions only.

    apt gets the locked version where it had a pattern. pip gets the locked files where it had an
    index of its own (`--no-index` wins over `--index-url`).
    """

    def exactly(match: re.Match[str]) -> str:
        fitting = [v for v in apt.get(match["name"], ()) if _takes(match["pattern"], v)]
        return f"'{match['name']}={fitting[-1]}'" if fitting else match[0]

    locked = _PIP_PAGE.sub(f"--find-links {LINKS}", _PIP_CONFIG.sub("", dockerfile))
    return _APT_PATTERN.sub(exactly, locked)


def _takes(pattern: str, version: str) -> bool:
    """Match as apt does for `name=pattern`: an epoch may be left out. Source: apt-get(8)."""
    return any(fnmatchcase(v, pattern) for v in (version, version.partition(":")[2] or version))


def preferences(apt: Mapping[str, Sequence[str]]) -> str:
    """Write apt's preferences: only the locked versions, even where that is a downgrade.

    Source: apt_preferences(5): above 1000 a version is taken even as a downgrade, below 0 never.
    """
    stanzas = ["Package: *\nPin: release *\nPin-Priority: -1\n"]
    stanzas += [
        f"Package: {name}\nPin: version {version}\nPin-Priority: 1001\n"
        for name, versions in sorted(apt.items())
        for version in versions
    ]
    return "\n".join(stanzas)
