"""What an image holds, by its own package databases: dpkg's, and the records that pip leaves."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from imagegen.engine.containers.containers import LaunchSpec, running
from imagegen.engine.images import store as images
from imagegen.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from imagegen.engine.client import Engine

LOOK_SECONDS = 120

# `-xdev` leaves /proc and mounts out. INSTALLER names who installed; dpkg's own packages have none.
# What setuptools carries in a folder `_vendor` came with it and by no wheel of its own.
_LOOK = r"""
dpkg-query -W -f='apt ${db:Status-Abbrev} ${Package} ${Version}\n'
find / -xdev -path '*.dist-info/INSTALLER' ! -path '*/_vendor/*' | LC_ALL=C sort |
while read -r installer; do
  folder="${installer%/INSTALLER}"
  echo "dist $(cat "$installer") ${folder##*/}"
  grep '^Tag: ' "$folder/WHEEL"
done
true
"""
_DIST = re.compile(r"dist (?:pip|uv) (?P<name>[^ -]+)-(?P<version>[^ -]+)\.dist-info$")


@dataclass(frozen=True)
class Dist:
    """A Python distribution that pip installed; `tags` are those of its wheel."""

    name: str
    version: str
    tags: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Contents:
    """Package -> version, as dpkg has them, and what pip brought beside them."""

    apt: Mapping[str, str] = field(default_factory=dict)
    dists: frozenset[Dist] = frozenset()


def contents(engine: Engine, ref: str) -> Contents:
    """Look into an image, in a container of it that runs nothing of its own.

    Raises EngineError where it does not start or has no dpkg.
    """
    spec = LaunchSpec(ref, ("sleep", str(LOOK_SECONDS * 2)), network="none")
    with running(engine, spec) as container:
        ended = container.exec(["sh", "-c", _LOOK], LOOK_SECONDS)
    if ended.code != 0 or "apt " not in ended.out:
        text = f"`{ref}` does not say what packages it has"
        raise EngineError.of(text, evidence=ended.err.splitlines()[-3:])
    return read_contents(ended.out.splitlines())


def read_contents(lines: Iterable[str]) -> Contents:
    """The lines `apt ii NAME VERSION`, and `dist INSTALLER FOLDER` with `Tag: TAG` behind each."""
    apt: dict[str, str] = {}
    dists: list[Dist] = []
    for line in lines:
        words = line.split()
        if words[:2] == ["apt", "ii"] and len(words) == 4:
            apt[words[2]] = words[3]
        elif words[:1] == ["dist"]:
            found = _DIST.match(line)
            dists.append(Dist(found["name"], found["version"]) if found else Dist("", ""))
        elif words[:1] == ["Tag:"] and dists:
            last = dists[-1]
            dists[-1] = Dist(last.name, last.version, last.tags | {words[1]})
    return Contents(apt, frozenset(dist for dist in dists if dist.name))


def identity(engine: Engine, ref: str) -> str:
    """What the root file system of a base is made of: the digest that its registry gave, or of its
    one layer where it came from no registry. An image id would name the time of the import too."""
    described = images.config(engine, ref)
    for named in described.get("RepoDigests") or ():
        return str(named).rpartition("@")[2]
    layers = described["RootFS"]["Layers"]
    return str(layers[-1]) if len(layers) == 1 else ",".join(map(str, layers))
