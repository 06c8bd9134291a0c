"""List the files that packages and wheels say they installed, with their checksums.

dpkg: /var/lib/dpkg/info/PACKAGE.md5sums, which leaves conffiles out (dh_md5sums(1)): those are made
to be changed. deb-md5sums(5), dpkg-divert(1), dpkg(1) for `path-exclude`. Wheels: RECORD of the
PyPA specification "Recording installed projects".
"""

import base64
import binascii
import csv
import fnmatch
import hashlib
import os
from typing import Collection, Dict, Iterable, Iterator, List, NamedTuple, Sequence, Tuple

from validate.probes.distributions import Distribution, in_folder
from validate.probes.files import names, read, under

INFO = "/var/lib/dpkg/info"
DIVERSIONS = "/var/lib/dpkg/diversions"
SETTINGS = "/etc/dpkg/dpkg.cfg.d"
MOST_BYTES = 1 << 26
LEFT_OUT = tuple(
    "/usr/share/{}/*".format(name)
    for name in ("doc", "gnome/help", "info", "linda", "lintian", "locale", "man")
)
"""What images are made without, with or without a word in dpkg's settings."""
OTHER_INSTALLERS = ("conda",)
"""conda changes files while it installs them, and leaves RECORD as it was."""
WRITTEN_AGAIN = (".pyc", ".dist-info/METADATA")
"""pip compiles again what a wheel brings; some wheels get another version after RECORD was written.
"""


class Diversion(NamedTuple):
    """Hold where a path is diverted to, and for which package it is not; `:` is the machine's."""

    to: str
    by: str


class Listed(NamedTuple):
    """Hold one file: where it is, its checksum, and who installed it and when.

    `owner` is a package of dpkg, or `NAME==VERSION` of a wheel. `since` is when it was installed,
    in seconds since the epoch. `size` is -1 if unknown.
    """

    path: str
    algorithm: str
    digest: str
    owner: str
    since: float
    of_wheel: bool = False
    size: int = -1


def diversions(root: str) -> Dict[str, Diversion]:
    """Read dpkg's diversions: three lines for each."""
    lines = read(under(root, DIVERSIONS), MOST_BYTES).splitlines()
    triples = [lines[at : at + 3] for at in range(0, len(lines) - 2, 3)]
    return {path: Diversion(to, by) for path, to, by in triples}


def of_packages(root: str, diverted: Dict[str, Diversion]) -> Iterator[Listed]:
    """Yield the files of dpkg's packages, each where a diversion has put it."""
    folder = under(root, INFO)
    for name in names(folder):
        owner, _, kind = name.rpartition(".")
        if kind != "md5sums":
            continue
        package, since = owner.partition(":")[0], _time(os.path.join(folder, owner + ".list"))
        for line in read(os.path.join(folder, name), MOST_BYTES).splitlines():
            digest, _, path = line.partition("  ")
            path = "/" + path.lstrip("/").replace("./", "", path.startswith("./"))
            moved = diverted.get(path)
            there = moved.to if moved and moved.by != package else path
            yield Listed(there, "md5", digest.strip(), package, since)


def of_wheels(sites: Iterable[str], known: Collection[str]) -> Iterator[Listed]:
    """Yield the files of the wheels in these folders that have a checksum in RECORD.

    What is written again after RECORD is left out: pip compiles anew what a wheel brings, and a
    wheel gets another version. RECORD of torch 1.11.0 sums a METADATA with `1.11.0+cu102`.
    A RECORD that is a file of a package, one of the `known` paths, is left out: the distribution
    moves files and leaves it as it was.
    """
    for site in sites:
        for one in in_folder(site):
            ours = os.path.join(one.path, "RECORD") not in known
            if one.kind == ".dist-info" and ours and _installer(one) not in OTHER_INSTALLERS:
                yield from _of_wheel(site, one)


def _of_wheel(site: str, one: Distribution) -> Iterator[Listed]:
    record = os.path.join(one.path, "RECORD")
    since = _time(record)
    for row in csv.reader(read(record, MOST_BYTES).splitlines()):
        algorithm, _, text = row[1].partition("=") if len(row) > 1 else ("", "", "")
        digest = _hexadecimal(text)
        again = row[:1] and row[0].endswith(WRITTEN_AGAIN)
        if digest and not again and algorithm in hashlib.algorithms_available:
            path = os.path.normpath(os.path.join(site, row[0]))
            size = int(row[2]) if len(row) > 2 and row[2].isdigit() else -1
            owner = "{}=={}".format(one.name, one.version)
            yield Listed(path, algorithm, digest, owner, since, True, size)


def without_record(sites: Iterable[str], known: Iterable[str]) -> List[str]:
    """List the wheels whose files nothing names: neither RECORD nor one of the `known` paths."""
    there = {os.path.realpath(path) for path in known if path.endswith("/METADATA")}
    found = [one for site in sites for one in in_folder(site) if one.kind == ".dist-info"]
    return [
        one.path
        for one in found
        if not os.path.isfile(os.path.join(one.path, "RECORD"))
        and os.path.realpath(os.path.join(one.path, "METADATA")) not in there
    ]


def left_out(root: str) -> "Excluded":
    """Return the rules by which dpkg does not unpack some files (path-exclude, path-include)."""
    rules = [(pattern, True) for pattern in LEFT_OUT]
    for name in names(under(root, SETTINGS)):
        for line in read(under(root, os.path.join(SETTINGS, name))).splitlines():
            word, _, pattern = line.strip().partition("=")
            if word.strip() in ("path-exclude", "path-include"):
                rules.append((pattern.strip(), word.strip() == "path-exclude"))
    return Excluded(rules)


class Excluded:
    """Say which paths dpkg leaves out; the last rule that matches a path decides, as in dpkg(1)."""

    def __init__(self, rules: Sequence[Tuple[str, bool]]) -> None:
        self._rules = list(rules)

    def __call__(self, path: str) -> bool:
        """Return whether a path is left out."""
        decided = [excluded for rule, excluded in self._rules if fnmatch.fnmatchcase(path, rule)]
        return bool(decided) and decided[-1]


def _installer(one: Distribution) -> str:
    return read(os.path.join(one.path, "INSTALLER")).lower()


def _hexadecimal(text: str) -> str:
    try:
        return binascii.hexlify(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))).decode()
    except (ValueError, binascii.Error):
        return ""


def _time(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0
