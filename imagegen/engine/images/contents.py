"""What is in an image, as one short script says in a container of it: packages, libraries, files.

Images of others are read too: what one cannot say (no dpkg, no loader's list) is empty.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from imagegen.engine.containers.containers import LaunchSpec, running
from imagegen.errors import EngineError
from imagegen.model.recipe import EXPECTATION_PATH

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from imagegen.engine.client import Engine
    from imagegen.engine.containers.exec import ExecResult

LOOK_SECONDS = 300
"""Most of it goes into the sizes of folders: seconds, minutes where a slow disk has none cached."""

LEAST_KILOBYTES = 1024
"""Folders and files below this are not told: they explain no difference, and there are too many."""

BUILD_TOOLS = ("gcc", "g++", "cc", "c++", "ld", "make", "cmake", "ninja", "nvcc", "git")

# No image has to have bash. What dpkg, ldconfig or awk is missing for is found missing.
# `-xdev` leaves /proc and mounts out. INSTALLER names who installed; dpkg's own packages have none.
# What setuptools carries in a folder `_vendor` came with it and by no wheel of its own.
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
  -exec grep -H . {} + \) -o -type f \( -path '*.dist-info/WHEEL' ! -path '*/_vendor/*' \
  -exec grep -H '^Tag: ' {} + \) -o -type f \( -path '*/conda-meta/*.json' -o -name '*.whl' \
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
    r"(?P<path>/.*/(?P<name>[^/]+?)-(?P<version>[^/-]+)\.dist-info)"
    r"/(INSTALLER:(?P<by>\S+)|WHEEL:Tag: (?P<tag>\S+))$"
)
_CONDA = re.compile(r"/conda-meta/(?P<name>[^/]+)-(?P<version>[^/-]+)-[^/-]+\.json$")


@dataclass(frozen=True, order=True)
class Package:
    """One installed package. `kind` is `deb`, `pypi` or `conda`; `source` is the source package of
    a `deb` with its version; `path` is where a `pypi` lies and `tags` are those of its wheel."""

    kind: str
    name: str
    version: str
    arch: str = ""
    source: str = ""
    path: str = ""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class ImageContents:
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

    def of_kind(self, kind: str) -> tuple[Package, ...]:
        """The packages of one kind."""
        return tuple(package for package in self.packages if package.kind == kind)

    @property
    def debs(self) -> Mapping[str, str]:
        """Package -> version, as dpkg has them."""
        return {package.name: package.version for package in self.of_kind("deb")}


def installed(engine: Engine, ref: str) -> ImageContents:
    """The contents of an image whose packages have to be known.

    Raises EngineError where it does not start or has no dpkg.
    """
    ended = run_script(engine, ref, sizes=False)
    found = read_contents(ended.out.splitlines())
    if ended.code != 0 or not found.debs:
        text = f"`{ref}` does not say what packages it has"
        raise EngineError.of(text, evidence=ended.err.splitlines()[-3:])
    return found


def run_script(engine: Engine, ref: str, sizes: bool) -> ExecResult:
    """Run the script in a container of the image that runs nothing of the image's own.

    Raises EngineError where it does not start.
    """
    idle = ("sleep", str(LOOK_SECONDS * 2))
    spec = LaunchSpec(ref, idle[1:], network="none", entrypoint=idle[:1])
    with running(engine, spec) as container:
        return container.exec(["sh", "-c", _script(sizes)], LOOK_SECONDS)


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


def read_contents(lines: Iterable[str]) -> ImageContents:
    """The lines of the script: each starts with a word that says what follows, or with the path
    of a record that pip left. A line of anything else is left out."""
    said = tuple(lines)
    rows: defaultdict[str, list[str]] = defaultdict(list)
    for kind, rest in _pairs(said, " "):
        rows[kind].append(rest)
    files = {path: int(size) for size, path in _pairs(rows["file"], " ")}
    packages = {*_debs(rows["deb"]), *_dists(said), *_condas(files)}
    return ImageContents(
        packages=tuple(sorted(packages)),
        sonames=dict(reversed([*_pairs(rows["so"], " ")])),  # the loader takes the first
        folders={path: int(size) * 1024 for size, path in _pairs(rows["du"], "\t")},
        files={path: size for path, size in files.items() if size and not _CONDA.search(path)},
        tools=tuple(dict.fromkeys(rows["tool"])),
        os={name: value.strip("\"'") for name, value in _pairs(rows["os"], "=")},
        promise=_document("".join(rows["promise"])),
    )


def _pairs(rows: Iterable[str], separator: str) -> Iterator[tuple[str, str]]:
    for row in rows:
        first, _, rest = row.partition(separator)
        yield first, rest


def _debs(rows: Iterable[str]) -> Iterator[Package]:
    for row in rows:
        words = row.split()
        if words[0] == "ii" and len(words) == 6:
            yield Package("deb", words[1], words[2], words[3], f"{words[4]} {words[5]}")


def _dists(lines: Iterable[str]) -> Iterator[Package]:
    """Distributions that pip installed; a `dist-info` of dpkg's is listed as a `deb` already."""
    found = [match for match in map(_DIST.match, lines) if match]
    tags: defaultdict[str, list[str]] = defaultdict(list)
    for match in found:
        tags[match["path"]] += filter(None, [match["tag"]])
    for match in found:
        if match["by"] in ("pip", "uv"):
            path = match["path"]
            own = tuple(sorted(tags[path]))
            yield Package("pypi", match["name"], match["version"], path=path, tags=own)


def _condas(paths: Iterable[str]) -> Iterator[Package]:
    for match in filter(None, map(_CONDA.search, paths)):
        yield Package("conda", match["name"], match["version"])


def _document(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
