"""Compare files with what their packages installed: dpkg's md5sums, and RECORD of a wheel."""

import hashlib
import os
import time
from typing import Dict, Iterable, List, NamedTuple, Sequence

from validate.probes.files import under
from validate.probes.package_lists import diversions, of_packages, of_wheels


class Installed(NamedTuple):
    """Hold the file of a package: who installed it, and the digest that it had then.

    `owner` is a package of dpkg, or `NAME==VERSION` of a wheel. `size` is -1 if unknown.
    """

    path: str
    owner: str
    algorithm: str
    digest: str
    size: int = -1
    of_wheel: bool = False

    def differs(self) -> bool:
        """Return whether the file is not what was installed; False if it cannot be read."""
        try:
            if self.size >= 0 and os.path.getsize(self.path) != self.size:
                return True
            return _digest(self.path, self.algorithm) != self.digest
        except OSError:
            return False


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def _digest(path: str, algorithm: str) -> str:
    found = hashlib.new(algorithm)
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            found.update(block)
    return found.hexdigest()


def installed(root: str, paths: Iterable[str], sites: Sequence[str] = ()) -> List[Installed]:
    """Find what packages say of these files; `sites` are folders of Python packages."""
    wanted = {os.path.realpath(path) for path in paths}
    ends = {os.path.basename(path) for path in wanted}
    folders: Dict[str, str] = {}
    found = {}
    for one in [*of_packages(root, diversions(root)), *of_wheels(sites, ())]:
        folder, file = os.path.split(under(root, one.path))
        if file not in ends:
            continue
        # The same file may have another name here: /lib is a link to /usr/lib.
        real = os.path.join(folders.setdefault(folder, os.path.realpath(folder)), file)
        if real in wanted:
            found[real] = Installed(
                real, one.owner, one.algorithm, one.digest, one.size, one.of_wheel
            )
    return [found[path] for path in sorted(found)]


def changed(known: Iterable[Installed], seconds: float) -> List[Installed]:
    """List the files that are not what was installed, within about so many seconds.

    The smallest are read first.
    """
    deadline, found = time.monotonic() + seconds, []
    for one in sorted(known, key=lambda one: _size(one.path)):
        if time.monotonic() > deadline:
            break
        if one.differs():
            found.append(one)
    return found
