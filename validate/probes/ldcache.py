"""Resolve libraries as the dynamic loader does, from its cache and its configuration."""

import glob
import os
from typing import Dict, Iterable, List, Sequence, Set, Tuple

from validate.probes.elf import Elf, read_elf
from validate.probes.files import DISABLED, names, read, under

Cache = Dict[str, List[str]]


def parse_cache(text: str) -> Cache:
    """Parse `ldconfig -p` into SONAME -> paths, in the loader's order."""
    cache: Cache = {}
    for line in text.splitlines():
        name, arrow, path = line.strip().partition(" => ")
        if arrow:
            cache.setdefault(name.split(" ")[0], []).append(path)
    return cache


def configured_folders(root: str, conf: str = "/etc/ld.so.conf") -> List[str]:
    """List the folders that /etc/ld.so.conf and the files it includes name (ldconfig(8))."""
    folders = []
    for line in read(under(root, conf)).splitlines():
        words = line.partition("#")[0].split()
        if len(words) == 2 and words[0] == "include":
            pattern = os.path.join(os.path.dirname(conf), words[1])
            for path in sorted(glob.glob(under(root, pattern))):
                folders += configured_folders(root, "/" + os.path.relpath(path, root))
        elif words:
            folders.append(words[0])
    return folders


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


class Loader:
    """Resolve names as ld.so(8) does: RPATH, LD_LIBRARY_PATH, RUNPATH, cache, default folders."""

    def __init__(self, cache: Cache, library_path: Sequence[str], defaults: Sequence[str]) -> None:
        self._cache = cache
        self._library_path = list(library_path)
        self._defaults = list(defaults)

    def missing(self, paths: Iterable[str]) -> Dict[str, str]:
        """Map each SONAME that these objects, and all that they load, do not find to who needs it.

        A name that another object of the same set brings counts as found: the loader matches
        SONAMEs that are loaded already.
        """
        todo: List[Tuple[str, Tuple[str, ...]]] = [(path, ()) for path in paths]
        seen: Set[str] = set()
        loaded: Set[str] = set()
        wanted: Dict[str, str] = {}
        while todo:
            path, inherited = todo.pop()
            real = os.path.realpath(path)
            elf = None if real in seen else read_elf(real)
            seen.add(real)
            if elf is None:
                continue
            loaded.update((elf.soname, os.path.basename(path)))
            rpath = () if elf.runpath else _origin(elf.rpath, real) + inherited
            for name in elf.needed:
                found = self._find(name, elf, real, rpath)
                if found:
                    todo.append((found, rpath))
                else:
                    wanted.setdefault(name, path)
        return {name: by for name, by in wanted.items() if name not in loaded}

    def _find(self, name: str, elf: Elf, real: str, rpath: Tuple[str, ...]) -> str:
        runpath = _origin(elf.runpath, real)
        for folder in (*rpath, *self._library_path, *runpath):
            if os.path.exists(os.path.join(folder, name)):
                return os.path.join(folder, name)
        for path in self._cache.get(name, []):
            if os.path.exists(path):
                return path
        places = [os.path.join(folder, name) for folder in self._defaults]
        return next((path for path in places if os.path.exists(path)), "")


def _origin(folders: Sequence[str], path: str) -> Tuple[str, ...]:
    here = os.path.dirname(path)
    return tuple(f.replace("${ORIGIN}", here).replace("$ORIGIN", here) for f in folders)
