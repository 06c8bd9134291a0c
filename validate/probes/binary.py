"""Find patterns in the bytes of libraries, also of very large ones, and the symbols they export."""

import mmap
import os
import re
import struct
from typing import IO, List, Tuple

SHT_DYNSYM, SECTION_BYTES, SYMBOL_BYTES = 11, 64, 24
UNDEFINED = 0


def marks(path: str, pattern: bytes) -> List[str]:
    """Return the distinct matches of a pattern (of its group, if it has one) in a file, sorted.

    The file is mapped, not read: libtorch_cuda.so has more than a GiB. The list is empty if the
    file cannot be read.
    """
    try:
        with open(path, "rb") as file:
            if not os.fstat(file.fileno()).st_size:
                return []
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return sorted({found.decode("ascii", "replace") for found in _all(pattern, data)})
    except OSError:
        return []


def _all(pattern: bytes, data: "mmap.mmap") -> List[bytes]:
    return [match.group(match.re.groups and 1) for match in re.finditer(pattern, data)]


def exported(path: str, prefix: str) -> List[str]:
    """List the dynamic symbols that a 64-bit object defines and whose names have this prefix."""
    try:
        with open(path, "rb") as file:
            return sorted(name for name in _defined(file) if name.startswith(prefix))
    except (OSError, struct.error, IndexError, ValueError):
        return []


def _defined(file: IO[bytes]) -> List[str]:
    """List the dynamic symbols that an object defines.

    elf(5): a symbol with a section of its own is defined here, one without is needed from
    elsewhere.
    """
    sections = _sections(file)
    found: List[str] = []
    for kind, offset, size, link in sections:
        if kind != SHT_DYNSYM:
            continue
        strings = _at(file, sections[link][1], sections[link][2])
        table = _at(file, offset, size - size % SYMBOL_BYTES)
        for name, _, _, section, _, _ in struct.iter_unpack("<IBBHQQ", table):
            if section != UNDEFINED:
                found.append(strings[name : strings.index(b"\0", name)].decode("ascii", "replace"))
    return found


def _sections(file: IO[bytes]) -> List[Tuple[int, int, int, int]]:
    """Return (type, offset, size, linked section) of each section of an object."""
    head = _at(file, 0, 64)
    if head[:6] != b"\x7fELF\x02\x01":
        return []
    (start,) = struct.unpack_from("<Q", head, 40)
    size, count = struct.unpack_from("<HH", head, 58)
    if size != SECTION_BYTES:
        return []
    table = _at(file, start, size * count)
    rows = [struct.unpack_from("<IIQQQQI", table, number * size) for number in range(count)]
    return [(row[1], row[4], row[5], row[6]) for row in rows]


def _at(file: IO[bytes], offset: int, size: int) -> bytes:
    file.seek(offset)
    return file.read(size)
