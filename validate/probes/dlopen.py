"""Find the library that dlopen(3) takes for a name, and the other ones that it hides."""

import os
from typing import Dict, List, Sequence

from validate.probes.files import distinct_files, names, under
from validate.probes.ldcache import Cache, Loader, configured_folders, parse_cache
from validate.process import run

TRUSTED = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")


class LoaderPath:
    """Search for libraries as the loader of one machine does; what it finds can be opened."""

    def __init__(self, library_path: Sequence[str], cache: Cache, folders: Sequence[str]) -> None:
        self._library_path = list(library_path)
        self._cache = cache
        self._folders = list(folders)

    @property
    def folders(self) -> List[str]:
        """Return every folder that is searched, in order."""
        return list(dict.fromkeys(self._library_path + self._folders))

    def find(self, name: str) -> List[str]:
        """List every library of this name, the one that dlopen takes first; no file twice."""
        places = [os.path.join(folder, name) for folder in self._library_path]
        places += self._cache.get(name, [])
        places += [os.path.join(folder, name) for folder in self._folders]
        return distinct_files([path for path in places if os.path.isfile(path)])

    def first(self, name: str) -> str:
        """Return the library that dlopen takes; empty if it finds none."""
        return next(iter(self.find(name)), "")

    def starting_with(self, prefix: str) -> List[str]:
        """List every library in the folders whose name has this prefix; no file twice."""
        found = [
            os.path.join(f, name) for f in self.folders for name in names(f) if _is(name, prefix)
        ]
        return distinct_files(found)

    def missing(self, path: str) -> List[str]:
        """List the libraries that a library and all that it loads need and do not find."""
        return sorted(self._loader().missing([path]))

    def closure(self, paths: Sequence[str]) -> List[str]:
        """List these objects and every library that they load, by real path."""
        return self._loader().closure(paths)

    def _loader(self) -> Loader:
        return Loader(self._cache, self._library_path, self._folders)


def _is(name: str, prefix: str) -> bool:
    return name.startswith(prefix) and ".so" in name


def loader_path(root: str, env: Dict[str, str], lib_dir: str) -> LoaderPath:
    """Return the loader's search path of this machine, or of a tree of files.

    A tree of files has no loader to ask, only the settings of one.
    """
    library_path = [
        under(root, folder) for folder in env.get("LD_LIBRARY_PATH", "").split(":") if folder
    ]
    cache = parse_cache(run(["/sbin/ldconfig", "-p"]).out) if root == "/" else {}
    folders = configured_folders(root) + [lib_dir, lib_dir.replace("/usr/", "/", 1), *TRUSTED]
    return LoaderPath(library_path, cache, [under(root, folder) for folder in folders if folder])
