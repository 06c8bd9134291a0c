"""What an image is made of, by its own databases and files: one container of it, one short script.

Images of others are read too; what one cannot say (no shell, no dpkg) is named as missing.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from imagegen.engine.client import answers
from imagegen.engine.containers.containers import LaunchSpec, running
from imagegen.engine.images import store as images
from imagegen.errors import EngineError
from imagegen.model.recipe import EXPECTATION_PATH

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from imagegen.engine.client import Engine

LOOK_SECONDS = 300
"""Most of it goes into the sizes of folders: seconds, minutes where a slow disk has none cached."""

LEAST_KILOBYTES = 1024
"""Folders and files below this are not told: they explain no difference, and there are too many."""

BUILD_TOOLS = ("gcc", "g++", "cc", "c++", "ld", "make", "cmake", "ninja", "nvcc", "git")

# No image has to have bash. What dpkg, ldconfig or awk is missing for is found missing.
_SCRIPT = r"""
PATH="$PATH:/usr/sbin:/sbin:/usr/bin:/bin"
[ -r /etc/os-release ] && sed 's/^/os /' /etc/os-release
[ -r EXPECTATION ] && echo "promise $(tr '\n' ' ' < EXPECTATION)"
dpkg-query -W -f='deb FIELDS\n'
ldconfig -p | sed -n 's/^\t\([^ ]*\) .*=> \(.*\)$/so \1 \2/p'
echo "$LD_LIBRARY_PATH" | tr ':' '\n' | while read -r folder; do
  for library in "$folder"/lib*.so*; do [ -e "$library" ] && echo "so ${library##*/} $library"; done
done
for tool in TOOLS; do command -v "$tool" | sed 's/^/tool /'; done
find / -xdev -type f \( -path '*.dist-info/INSTALLER' ! -path '*/_vendor/*' \
  -exec grep -H . {} + \) -o -type f \( -path '*/conda-meta/*.json' -o -name '*.whl' \
  -o -name '*.deb' -o -name '*.tar' -o -name '*.tar.*' -o -name '*.tgz' -o -name '*.run' \
  -o -path '/var/lib/apt/lists/*' -o -path '*/.cache/*' -o -path '/tmp/*' -o -path '/var/tmp/*' \
  \) -exec stat -c 'file %s %n' {} +
SIZES
true
"""
_FIELDS = (
    "db:Status-Abbrev",
    "Package",
    "Version",
    "Architecture",
    "source:Package",
    "source:Version",
)
# Sizes as layers count them, without the rest of a file's last block, where this `du` can.
_SIZES = f"""
du --apparent-size -s /etc > /dev/null 2>&1 && as_layers=--apparent-size
du $as_layers -axk / | awk '$1 >= {LEAST_KILOBYTES} {{ print "du " $0 }}'"""
_DIST = re.compile(
    r"(?P<path>/.*/(?P<name>[^/]+?)-(?P<version>[^/-]+)\.dist-info)/INSTALLER:(?P<by>\S+)$"
)
_CONDA = re.compile(r"/conda-meta/(?P<name>[^/]+)-(?P<version>[^/-]+)-[^/-]+\.json$")


@dataclass(frozen=True, order=True)
class Package:
    """One installed package. `kind` is `deb`, `pypi` or `conda`; `source` is the source package of
    a `deb` with its version; `path` is where the distribution of a `pypi` lies."""

    kind: str
    name: str
    version: str
    arch: str = ""
    source: str = ""
    path: str = ""


@dataclass(frozen=True)
class Layer:
    """A layer: its digest, the instruction that made it and its bytes (-1: nobody says)."""

    digest: str
    made_by: str = ""
    size_bytes: int = -1


@dataclass(frozen=True)
class Inside:
    """What a container of the image said. `folders` are paths, of large files too, with the bytes
    below them, `sonames` paths by the name that the loader knows, `files` what a build may have
    left, with bytes; `promise` is the expectation file of an image of this tool."""

    packages: tuple[Package, ...] = ()
    sonames: Mapping[str, str] = field(default_factory=dict)
    folders: Mapping[str, int] = field(default_factory=dict)
    files: Mapping[str, int] = field(default_factory=dict)
    tools: tuple[str, ...] = ()
    os: Mapping[str, str] = field(default_factory=dict)
    promise: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Inventory:
    """An image, from outside and from inside. `missing` says in words what could not be read."""

    ref: str
    id: str
    created: str
    size_bytes: int
    labels: Mapping[str, str]
    env: Mapping[str, str]
    layers: tuple[Layer, ...]
    inside: Inside = Inside()
    missing: tuple[str, ...] = ()


def inventory(engine: Engine, ref: str, *, sizes: bool = True) -> Inventory:
    """Read an image; without `sizes` in half the time, and nobody knows where the bytes are.

    Raises EngineError where the engine has no such image, or dies; an image that does not start is
    read from outside alone.
    """
    described = images.config(engine, ref)
    config = described.get("Config") or {}
    inside, missing = _look(engine, str(described["Id"]), sizes)
    return Inventory(
        ref=ref,
        id=str(described["Id"]),
        created=str(described.get("Created") or ""),
        size_bytes=int(described["Size"]),
        labels=dict(config.get("Labels") or {}),
        env=dict(one.partition("=")[::2] for one in config.get("Env") or ()),
        layers=layers_of(described["RootFS"].get("Layers") or (), images.history(engine, ref)),
        inside=inside,
        missing=missing,
    )


def _look(engine: Engine, image_id: str, sizes: bool) -> tuple[Inside, tuple[str, ...]]:
    idle = ("sleep", str(LOOK_SECONDS * 2))
    spec = LaunchSpec(image_id, idle[1:], network="none", entrypoint=idle[:1])
    try:
        with running(engine, spec) as container:
            ended = container.exec(["sh", "-c", _script(sizes)], LOOK_SECONDS)
    except EngineError as error:
        if not answers(engine):
            raise
        why = "; ".join(line for problem in error.problems for line in problem.evidence)
        return Inside(), (f"what is inside: it does not start `sleep` and `sh` ({why})",)
    if ended.timed_out:
        return Inside(), (f"what is inside: it was not read within {LOOK_SECONDS} s",)
    found = read_inside(ended.out.splitlines())
    return found, _missing(found, sizes)


def _script(sizes: bool) -> str:
    filled = {
        "EXPECTATION": EXPECTATION_PATH,
        "FIELDS": " ".join(f"${{{name}}}" for name in _FIELDS),
        "TOOLS": " ".join(BUILD_TOOLS),
        "SIZES": _SIZES if sizes else "",
    }
    script = _SCRIPT
    for name, text in filled.items():
        script = script.replace(name, text)
    return script


def _missing(found: Inside, sizes: bool) -> tuple[str, ...]:
    missing = []
    if not any(package.kind == "deb" for package in found.packages):
        missing.append("system packages: it has no dpkg")
    if not found.sonames:
        missing.append("shared libraries: its loader keeps no list")
    if sizes and not found.folders:
        missing.append("where the bytes are: it has no `du`, or no `awk`")
    return tuple(missing)


def read_inside(lines: Iterable[str]) -> Inside:
    """The lines of the script; a line of anything else is left out."""
    packages: set[Package] = set()
    sonames: dict[str, str] = {}
    folders: dict[str, int] = {}
    files: dict[str, int] = {}
    tools: list[str] = []
    os: dict[str, str] = {}
    promise: dict[str, Any] = {}
    for line in lines:
        kind, _, rest = line.partition(" ")
        if kind == "deb":
            packages |= _deb(rest)
        elif kind == "so":
            sonames.setdefault(*rest.partition(" ")[::2])
        elif kind == "du":
            size, _, path = rest.partition("\t")
            folders[path] = int(size) * 1024
        elif kind == "file":
            size, _, path = rest.partition(" ")
            files[path] = int(size)
        elif kind == "tool":
            tools.append(rest)
        elif kind == "os":
            name, _, value = rest.partition("=")
            os[name] = value.strip("\"'")
        elif kind == "promise":
            promise = _document(rest)
        elif (dist := _DIST.match(line)) and dist["by"] in ("pip", "uv"):
            packages.add(Package("pypi", dist["name"], dist["version"], path=dist["path"]))
    packages |= {
        Package("conda", match["name"], match["version"])
        for match in map(_CONDA.search, files)
        if match
    }
    files = {path: size for path, size in files.items() if size and not _CONDA.search(path)}
    return Inside(
        tuple(sorted(packages)), sonames, folders, files, tuple(dict.fromkeys(tools)), os, promise
    )


def _deb(text: str) -> set[Package]:
    words = text.split()
    if words[0] != "ii" or len(words) != 6:
        return set()
    return {Package("deb", words[1], words[2], words[3], f"{words[4]} {words[5]}")}


def _document(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


_MAKES_NO_LAYER = re.compile(
    r"(/bin/sh -c #\(nop\) +)?(ARG|CMD|ENTRYPOINT|ENV|EXPOSE|HEALTHCHECK|LABEL|MAINTAINER|ONBUILD"
    r"|SHELL|STOPSIGNAL|USER|VOLUME)\b"
)


def layers_of(digests: Sequence[str], history: Sequence[tuple[str, int]]) -> tuple[Layer, ...]:
    """The layers, each with the entry of the history that made it.

    Instructions that only set something make no layer, and a WORKDIR makes one or none; where the
    counts still do not meet, nobody can say which entry made which layer.
    """
    made = [row for row in history if row[1] or not _MAKES_NO_LAYER.match(row[0])]
    if len(made) > len(digests):
        made = [row for row in made if row[1] or "WORKDIR" not in row[0]]
    if len(made) != len(digests):
        return tuple(map(Layer, digests))
    return tuple(
        Layer(digest, text, size) for digest, (text, size) in zip(digests, made, strict=True)
    )
