"""Compare files with what their packages installed: dpkg's md5sums, and RECORD of a wheel."""

import base64
import hashlib
import os
import time
from typing import Dict, Iterable, Iterator, List, NamedTuple, Sequence, Set, Tuple

from validate.probes.files import names, read, under

DPKG = "/var/lib/dpkg/info"
DIVERSIONS = "/var/lib/dpkg/diversions"
LARGEST_LIST = 1 << 26


class Installed(NamedTuple):
    """Hold the file of a package: who installed it, and the digest that it had then.

    `owner` is a package of dpkg, or `NAME==VERSION` of a wheel. `size` is -1 if unknown.
    """

    path: str
    owner: str
    algorithm: str
    digest: str
    size: int = -1

    @property
    def of_wheel(self) -> bool:
        """Return whether pip installed the file."""
        return "==" in self.owner

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
    found = {one.path: one for one in _of_dpkg(root, wanted)}
    for site in sites:
        found.update((one.path, one) for one in _of_wheels(site, wanted))
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


def _of_dpkg(root: str, wanted: Set[str]) -> Iterator[Installed]:
    """Yield the files of packages. One that another package took the place of is left out."""
    diverted = set(read(under(root, DIVERSIONS)).splitlines()[::3])
    # The same file may have another name here: /lib is a link to /usr/lib.
    ends = {os.path.basename(path) for path in wanted}
    folders: Dict[str, str] = {}
    for name in names(under(root, DPKG)):
        if not name.endswith(".md5sums"):
            continue
        text = read(os.path.join(under(root, DPKG), name), LARGEST_LIST)
        for digest, path in _lines(text):
            if os.path.basename(path) not in ends or "/" + path in diverted:
                continue
            folder, file = os.path.split(under(root, path))
            real = os.path.join(folders.setdefault(folder, os.path.realpath(folder)), file)
            if real in wanted:
                yield Installed(real, name[: -len(".md5sums")].partition(":")[0], "md5", digest)


def _lines(text: str) -> Iterator[Tuple[str, str]]:
    for line in text.splitlines():
        digest, _, path = line.partition("  ")
        if path:
            yield digest, path


def _of_wheels(site: str, wanted: Set[str]) -> Iterator[Installed]:
    """Yield the files of wheels in a folder, from `path,sha256=digest,size` in their RECORD."""
    for name in names(site):
        if not name.endswith(".dist-info"):
            continue
        owner = "==".join(name[: -len(".dist-info")].split("-")[:2])
        for line in read(os.path.join(site, name, "RECORD"), LARGEST_LIST).splitlines():
            path, _, rest = line.rpartition(",sha256=")
            real = os.path.join(os.path.realpath(site), os.path.normpath(path.strip('"')))
            if path and real in wanted:
                digest, _, size = rest.partition(",")
                yield Installed(
                    real, owner, "sha256", _hexadecimal(digest), int(size) if size.isdigit() else -1
                )


def _hexadecimal(digest: str) -> str:
    """Return a digest of RECORD, which is base64 for URLs without its padding, in hexadecimal."""
    try:
        return base64.urlsafe_b64decode(digest + "=" * (-len(digest) % 4)).hex()
    except ValueError:
        return ""
