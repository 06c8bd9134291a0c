"""Resolve libraries as the dynamic loader does, from its cache and its configuration."""

import glob
import os
import re
from typing import Dict, Iterable, List, NamedTuple, Optional, Sequence, Set, Tuple

from validate.probes.elf import Elf, read_elf
from validate.probes.files import DISABLED, names, read, under

Cache = Dict[str, List[str]]

OF_DISTRIBUTION = re.compile(r"libc\.conf$|\S+-linux-gnu\.conf$")
"""Settings files of the distribution, which stay as they are."""
MOUNTED_AT_START = "/usr/local/nvidia/"
"""Where a driver of the host may be mounted: images name it without having it."""


def parse_cache(text: str) -> Cache:
    """Parse `ldconfig -p` into SONAME -> paths, in the loader's order."""
    cache: Cache = {}
    for line in text.splitlines():
        name, arrow, path = line.strip().partition(" => ")
        if arrow:
            cache.setdefault(name.split(" ")[0], []).append(path)
    return cache


def configured(root: str, conf: str = "/etc/ld.so.conf") -> List[Tuple[str, str]]:
    """List (file, folder) of each line of /etc/ld.so.conf and the files it includes (ldconfig(8)).

    A file that is named and not there is a line of the file that includes it.
    """
    found = []
    for line in read(under(root, conf)).splitlines():
        words = line.partition("#")[0].split()
        if len(words) == 2 and words[0] == "include":
            pattern = os.path.join(os.path.dirname(conf), words[1])
            paths = sorted(glob.glob(under(root, pattern)))
            for path in paths:
                found += configured(root, "/" + os.path.relpath(path, root))
            if not paths and not glob.has_magic(pattern):
                found.append((conf, pattern))
        elif words and words[0].startswith("/"):
            found.append((conf, words[0]))
    return found


def configured_folders(root: str) -> List[str]:
    """List the folders that /etc/ld.so.conf and the files it includes name."""
    return [folder for _, folder in configured(root)]


def gone_lines(root: str) -> List[Tuple[str, str]]:
    """List (file, folder) of each line of the loader's settings that leads to what is not there.

    The distribution names folders that need not be there, and the driver's are mounted at start.
    """
    return [
        (file, folder)
        for file, folder in configured(root)
        if not OF_DISTRIBUTION.match(os.path.basename(file))
        and not folder.startswith(MOUNTED_AT_START)
        and not os.path.exists(under(root, folder))
    ]


def gone_entries(root: str, cache: Cache) -> List[Tuple[str, str]]:
    """List (name, path) of each entry of the cache whose file is not there."""
    return [
        (name, path)
        for name, paths in sorted(cache.items())
        for path in paths
        if not os.path.exists(under(root, path))
    ]


def not_in_cache(root: str, folders: Iterable[str], cache: Cache) -> List[str]:
    """List the libraries in these folders whose SONAME is not in the cache."""
    found = []
    for folder in folders:
        for name in names(under(root, folder)):
            path = os.path.join(folder, name)
            if not name.startswith("lib") or ".so" not in name or os.path.islink(under(root, path)):
                continue
            elf = read_elf(under(root, path))
            if elf and elf.soname and ".so." in elf.soname and elf.soname not in cache:
                found.append(path)
    return found


def broken_links(root: str, folders: Iterable[str]) -> List[str]:
    """List the links to libraries in these folders whose target does not exist."""
    found = []
    for folder in folders:
        for name in names(under(root, folder)):
            path = under(root, os.path.join(folder, name))
            used = ".so" in name and not name.startswith(DISABLED)
            if used and os.path.islink(path) and not os.path.exists(path):
                found.append("{} -> {}".format(os.path.join(folder, name), os.readlink(path)))
    return found


class TooOld(NamedTuple):
    """Name an object, and the version that it needs of a library which has older ones only."""

    by: str
    version: str
    library: str
    newest: str

    def __str__(self) -> str:
        has = ", which has {} at most".format(self.newest) if self.newest else ""
        return "{} needs {} of {}{}".format(self.by, self.version, self.library, has)


class Loaded(NamedTuple):
    """Hold what was seen of some objects and all that they load.

    `missing` maps each SONAME that is not found to who needs it. `files` are real paths.
    """

    missing: Dict[str, str]
    too_old: List[TooOld]
    files: Set[str]


class Loader:
    """Resolve names as ld.so(8) does: RPATH, LD_LIBRARY_PATH, RUNPATH, cache, default folders."""

    def __init__(self, cache: Cache, library_path: Sequence[str], defaults: Sequence[str]) -> None:
        self._cache = cache
        self._library_path = list(library_path)
        self._defaults = list(defaults)
        self._read: Dict[str, Optional[Elf]] = {}
        self._found: Dict[Tuple[str, Tuple[str, ...], Tuple[str, ...]], str] = {}

    def missing(self, paths: Iterable[str]) -> Dict[str, str]:
        """Map each SONAME that these objects, and all that they load, do not find to who needs it.

        A name that another object of the same set brings counts as found: the loader matches
        SONAMEs that are loaded already.
        """
        return self.load(paths).missing

    def closure(self, paths: Iterable[str]) -> List[str]:
        """List these objects and all that they load, by real path."""
        return sorted(self.load(paths).files)

    def load(self, paths: Iterable[str], program: str = "") -> Loaded:
        """Follow what these objects need; `program` is the one that loads them, if it has RPATH."""
        start = self._elf(os.path.realpath(program)) if program else None
        folders = _origin(start.rpath, os.path.realpath(program)) if start else ()
        todo: List[Tuple[str, Tuple[str, ...]]] = [(path, folders) for path in paths]
        seen: Set[str] = set()
        files: Set[str] = set()
        loaded: Set[str] = set()
        wanted: Dict[str, str] = {}
        too_old: List[TooOld] = []
        while todo:
            path, inherited = todo.pop()
            if path in seen:
                continue
            real = os.path.realpath(path)
            elf = None if real in seen else self._elf(real)
            seen.update((path, real))
            files.add(real)
            if elf is None:
                continue
            loaded.update((elf.soname, os.path.basename(path)))
            rpath = () if elf.runpath else _origin(elf.rpath, real) + inherited
            found = {name: self._find(name, elf, real, rpath) for name in elf.needed}
            todo += [(there, rpath) for there in found.values() if there]
            for name in (name for name in elf.needed if not found[name]):
                wanted.setdefault(name, path)
            too_old += self._too_old(path, elf, found)
        missing = {name: by for name, by in wanted.items() if name not in loaded}
        return Loaded(missing, too_old, files)

    def _elf(self, real: str) -> Optional[Elf]:
        if real not in self._read:
            self._read[real] = read_elf(real)
        return self._read[real]

    def _library(self, path: str) -> Optional[Elf]:
        if path not in self._read:
            self._read[path] = self._elf(os.path.realpath(path))
        return self._read[path]

    def _too_old(self, path: str, elf: Elf, found: Dict[str, str]) -> List[TooOld]:
        """List the versions that an object needs of a library which defines others.

        A library without any versions is taken as it is: the loader only warns of it.
        """
        lacking = []
        for name, versions in elf.wants:
            there = found.get(name, "")
            library = self._library(there) if there else None
            if library and library.defines:
                lost = [one for one in versions if one not in library.defines]
                lacking += [TooOld(path, one, there, _newest(one, library)) for one in lost]
        return lacking

    def _find(self, name: str, elf: Elf, real: str, rpath: Tuple[str, ...]) -> str:
        asked = (name, rpath, _origin(elf.runpath, real))
        if asked not in self._found:
            self._found[asked] = self._search(*asked)
        return self._found[asked]

    def _search(self, name: str, rpath: Tuple[str, ...], runpath: Tuple[str, ...]) -> str:
        for folder in (*rpath, *self._library_path, *runpath):
            if os.path.exists(os.path.join(folder, name)):
                return os.path.join(folder, name)
        for path in self._cache.get(name, []):
            if os.path.exists(path):
                return path
        places = [os.path.join(folder, name) for folder in self._defaults]
        return next((path for path in places if os.path.exists(path)), "")


def _newest(version: str, library: Elf) -> str:
    """Return the newest version of a library that has the name of another one: `GLIBC_2.36`."""
    stem = version.rpartition("_")[0] + "_"
    of_name = [one for one in library.defines if one.startswith(stem) and one[-1].isdigit()]
    return max(of_name, key=_numbers, default="")


def _numbers(version: str) -> List[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def _origin(folders: Sequence[str], path: str) -> Tuple[str, ...]:
    here = os.path.dirname(path)
    return tuple(f.replace("${ORIGIN}", here).replace("$ORIGIN", here) for f in folders)
