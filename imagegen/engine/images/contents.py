"""Read what is in an image, with one short script in a container: packages, libraries, files.

It reads images of others too; what an image cannot report (no dpkg, no loader's list) is empty.
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
"""Most of the time goes into the sizes of folders: seconds; minutes on a slow disk without cache.
"""

LEAST_KILOBYTES = 1024
"""Smaller folders and files are left out: they explain no difference, and there are too many."""

BUILD_TOOLS = ("gcc", "g++", "cc", "c++", "ld", "make", "cmake", "ninja", "nvcc", "git")

# The script is for `sh`, because an image may have no bash. Without dpkg, ldconfig or awk the facts
# that need them are missing. `-xdev` leaves /proc and mounts out. INSTALLER names what installed a
# package; packages of dpkg have none. The packages in a folder `_vendor` are parts of setuptools,
# not wheels that were installed. REQUESTED is empty: somebody asked pip for that package by name.
_SCRIPT = r"""
PATH="$PATH:/usr/sbin:/sbin:/usr/bin:/bin"
[ -r /etc/os-release ] && sed 's/^/os /' /etc/os-release
[ -r EXPECTATION ] && echo "promise $(tr '\n' ' ' < EXPECTATION)"
dpkg-query -W -f='deb FIELDS\n'
ldconfig -p | sed -n 's/^\t\([^ ]*\) .*=> \(.*\)$/so \1 \2/p'
echo "$LD_LIBRARY_PATH" | tr ':' '\n' | while read -r folder; do
  for library in "$folder"/lib*.so*; do [ -e "$library" ] && echo "so ${library##*/} $library"; done
done
ldconfig -p | sed -n 's/^\t.* => //p' | sort -u | xargs -r readlink -f | sed 's/^/real /'
sed -n 's/^Package: /auto /p' /var/lib/apt/extended_states
for tool in TOOLS; do command -v "$tool" | sed 's/^/tool /'; done
find / -xdev -type f \( -path '*.dist-info/INSTALLER' ! -path '*/_vendor/*' \
  -exec grep -H . {} + \) -o -type f \( -path '*.dist-info/WHEEL' ! -path '*/_vendor/*' \
  -exec grep -H '^Tag: ' {} + \) -o -type f \( -path '*.dist-info/REQUESTED' \
  -o -path '*/conda-meta/*.json' -o -name '*.whl' \
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
# Count sizes as layers do, without the rest of a file's last block, if this `du` can.
_SIZES = f"""
du --apparent-size -s /etc > /dev/null 2>&1 && as_layers=--apparent-size
du $as_layers -axk / | awk '$1 >= {LEAST_KILOBYTES} {{ print "du " $0 }}'"""
_DIST = re.compile(
    r"(?P<path>/.*/(?P<name>[^/]+?)-(?P<version>[^/-]+)\.dist-info)"
    r"/(INSTALLER:(?P<by>\S+)|WHEEL:Tag: (?P<tag>\S+))$"
)
_REQUESTED = "/REQUESTED"
_CONDA = re.compile(r"/conda-meta/(?P<name>[^/]+)-(?P<version>[^/-]+)-[^/-]+\.json$")


@dataclass(frozen=True, order=True)
class Package:
    """Describe one installed package.

    `kind` is `deb`, `pypi` or `conda`. `source` is the source package of a `deb` with its version.
    `path` is the folder of a `pypi` package's metadata, and `tags` are the tags of its wheel.
    """

    kind: str
    name: str
    version: str
    arch: str = ""
    source: str = ""
    path: str = ""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class ImageContents:
    """Hold what a container of the image reported.

    `folders` maps paths, also of large files, to the bytes below them. `sonames` maps the names
    that the loader knows to paths, `libraries` are the files behind them. `requested` has the paths
    of `pypi` packages that somebody named, `automatic` the debs that apt added to what was named.
    `files` maps files that a build may have left to their bytes.
    `promise` is the content of the expectation file in an image of this tool.
    """

    packages: tuple[Package, ...] = ()
    sonames: Mapping[str, str] = field(default_factory=dict)
    libraries: tuple[str, ...] = ()
    requested: frozenset[str] = frozenset()
    automatic: frozenset[str] = frozenset()
    folders: Mapping[str, int] = field(default_factory=dict)
    files: Mapping[str, int] = field(default_factory=dict)
    tools: tuple[str, ...] = ()
    os: Mapping[str, str] = field(default_factory=dict)
    promise: Mapping[str, Any] = field(default_factory=dict)

    def of_kind(self, kind: str) -> tuple[Package, ...]:
        """Return the packages of one kind."""
        return tuple(package for package in self.packages if package.kind == kind)

    @property
    def debs(self) -> Mapping[str, str]:
        """Map each dpkg package to its version."""
        return {package.name: package.version for package in self.of_kind("deb")}


def installed(engine: Engine, ref: str) -> ImageContents:
    """Read the contents of an image whose packages have to be known.

    Raises EngineError where it does not start or has no dpkg.
    """
    ended = run_script(engine, ref, sizes=False)
    found = read_contents(ended.out.splitlines())
    if ended.code != 0 or not found.debs:
        text = f"`{ref}` does not say what packages it has"
        raise EngineError.of(text, evidence=ended.err.splitlines()[-3:])
    return found


def run_script(engine: Engine, ref: str, sizes: bool) -> ExecResult:
    """Run the script in a container of the image, without the image's own command.

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
    """Parse the lines that the script printed.

    Each starts with a word that says what follows, or with the path of a record that pip left.
    Other lines are ignored.
    """
    printed = tuple(lines)
    rows: defaultdict[str, list[str]] = defaultdict(list)
    for kind, rest in _pairs(printed, " "):
        rows[kind].append(rest)
    files = {path: int(size) for size, path in _pairs(rows["file"], " ")}
    packages = {*_debs(rows["deb"]), *_dists(printed), *_condas(files)}
    return ImageContents(
        packages=tuple(sorted(packages)),
        sonames=dict(reversed([*_pairs(rows["so"], " ")])),  # the loader takes the first
        libraries=tuple(sorted({*rows["real"]})),
        requested=frozenset(p.removesuffix(_REQUESTED) for p in files if p.endswith(_REQUESTED)),
        automatic=frozenset(rows["auto"]),
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
    """List distributions that pip installed; a `dist-info` of dpkg is already listed as a `deb`."""
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
