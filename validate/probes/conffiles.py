"""Tell which lines of a file of settings are not those of its package (dpkg's conffiles).

dpkg keeps the checksum of a conffile in /var/lib/dpkg/status, not the file. What was done to it is
found by undoing the usual changes until the checksum is right: such files are small.
"""

import hashlib
import re
from typing import Iterator, List, NamedTuple, Optional

from validate.probes.files import read, under

STATUS = "/var/lib/dpkg/status"
MOST_LINES = 400


class Line(NamedTuple):
    """Hold a line of a file, and what the package has in its place; empty if it has none."""

    text: str = ""
    kept: str = ""


def not_of_package(root: str, path: str) -> List[Line]:
    """List the lines of a file that the package of the distribution did not bring."""
    try:
        with open(under(root, path), "rb") as file:
            data = file.read(1 << 20)
    except OSError:
        return []
    lines = _text(data).splitlines()
    if not any(line.strip() and not line.lstrip().startswith("#") for line in lines):
        return []
    digest = _checksum(root, path)
    return changed_lines(data, digest) if digest else list(map(Line, lines))


def _checksum(root: str, path: str) -> str:
    """Return the checksum that dpkg has of a conffile; empty if it knows none."""
    pattern = r"^ {} ([0-9a-f]{{32}})".format(re.escape(path))
    found = re.search(pattern, read(under(root, STATUS), 1 << 26), re.MULTILINE)
    return found.group(1) if found else ""


def changed_lines(data: bytes, digest: str) -> List[Line]:
    """List the lines that are new since a file had this checksum; if that is unclear, all."""
    lines = data.splitlines(True)
    found = None
    if len(lines) <= MOST_LINES:
        found = _added(lines, digest)
        found = _continued(data, digest) if found is None else found
        found = _edited(lines, digest) if found is None else found
    return list(map(Line, _text(data).splitlines())) if found is None else found


def _added(lines: List[bytes], digest: str) -> Optional[List[Line]]:
    """Return the run of lines without which the checksum is right."""
    for length in range(len(lines) + 1):
        for at in range(len(lines) - length, -1, -1):
            rest = b"".join(lines[:at] + lines[at + length :])
            if digest in (_md5(rest), _md5(rest.rstrip(b"\n"))):
                return [Line(_text(line).rstrip("\n")) for line in lines[at : at + length]]
    return None


def _continued(data: bytes, digest: str) -> Optional[List[Line]]:
    """Return the lines from where the checksum was right.

    `>>` to a file without an end of its last line continues that line.
    """
    counted = hashlib.md5()
    for end in range(len(data)):
        counted.update(data[end : end + 1])
        if counted.hexdigest() == digest:
            start = data.rfind(b"\n", 0, end) + 1
            first, *more = _text(data[start:]).splitlines()
            return [Line(first, _text(data[start : end + 1])), *map(Line, more)]
    return None


def _edited(lines: List[bytes], digest: str) -> Optional[List[Line]]:
    """Return the line with another value, or with another sign in front."""
    for at, line in enumerate(lines):
        for before in _forms(line):
            if _md5(b"".join([*lines[:at], before, *lines[at + 1 :]])) == digest:
                return [Line(_text(line).rstrip("\n"), _text(before).rstrip("\n"))]
    return None


def _forms(line: bytes) -> Iterator[bytes]:
    """Yield what a line may have been: a comment, or an exclusion of what it now asks for."""
    yield from (b"#" + line, b"# " + line, line.lstrip(b"# "))
    name, equals, value = line.partition(b"=")
    if equals:
        space = value[: len(value) - len(value.lstrip())]
        bare = value.lstrip().lstrip(b"^")
        yield from (name + equals + space + sign + bare for sign in (b"^", b""))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _md5(data: bytes) -> str:
    return hashlib.md5(data).hexdigest()
