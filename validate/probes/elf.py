"""Read from the headers of an ELF file what it is called, and what it needs of others (elf(5))."""

import mmap
import struct
from typing import Dict, FrozenSet, List, NamedTuple, Optional, Tuple

PT_LOAD, PT_DYNAMIC = 1, 2
DT_NEEDED, DT_STRTAB, DT_SONAME, DT_RPATH, DT_RUNPATH = 1, 5, 14, 15, 29
DT_VERDEF, DT_VERDEFNUM, DT_VERNEED, DT_VERNEEDNUM = 0x6FFFFFFC, 0x6FFFFFFD, 0x6FFFFFFE, 0x6FFFFFFF
OF_THE_FILE, WEAK = 1, 2
"""Flags of a version: it only names the file itself; the loader starts the program without it."""
LONGEST_NAME = 4096
MOST_VERSIONS = 4096

Needs = Tuple[Tuple[str, Tuple[str, ...]], ...]


class Elf(NamedTuple):
    """Hold the dynamic section of one shared object; `rpath` and `runpath` may have `$ORIGIN`.

    `wants` has the symbol versions that it needs of each library, `defines` those that it has.
    """

    soname: str
    needed: Tuple[str, ...]
    rpath: Tuple[str, ...]
    runpath: Tuple[str, ...]
    wants: Needs = ()
    defines: FrozenSet[str] = frozenset()


def read_elf(path: str) -> Optional[Elf]:
    """Read the dynamic section of a 64-bit little-endian object; None for anything else."""
    try:
        with open(path, "rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        with data:
            return _read(data)
    except (OSError, ValueError, struct.error):  # ValueError: an empty file cannot be mapped
        return None


def _read(data: "mmap.mmap") -> Optional[Elf]:
    if data[:6] != b"\x7fELF\x02\x01" or len(data) < 64:
        return None
    segments = _segments(data)
    dynamic = [(offset, size) for kind, offset, _, size in segments if kind == PT_DYNAMIC]
    tags = _tags(data, *dynamic[0]) if dynamic else {}
    if DT_STRTAB not in tags:
        return None
    strings = _offset(segments, tags[DT_STRTAB][0])

    def strings_of(tag: int) -> List[str]:
        return [_string(data, strings + at) for at in tags.get(tag, [])]

    return Elf(
        soname="".join(strings_of(DT_SONAME)[:1]),
        needed=tuple(strings_of(DT_NEEDED)),
        rpath=_folders(strings_of(DT_RPATH)),
        runpath=_folders(strings_of(DT_RUNPATH)),
        wants=_wants(data, strings, *_table(segments, tags, DT_VERNEED, DT_VERNEEDNUM)),
        defines=_defines(data, strings, *_table(segments, tags, DT_VERDEF, DT_VERDEFNUM)),
    )


def _segments(data: "mmap.mmap") -> List[Tuple[int, int, int, int]]:
    """Return (type, file offset, address, size in the file) of each program header."""
    start, size, count = struct.unpack_from("<Q", data, 32) + struct.unpack_from("<HH", data, 54)
    found = []
    for at in range(start, start + size * count, size or 1):
        kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", data, at)
        found.append((kind, offset, address, length))
    return found


def _tags(data: "mmap.mmap", offset: int, size: int) -> Dict[int, List[int]]:
    tags: Dict[int, List[int]] = {}
    for tag, value in struct.iter_unpack("<qQ", data[offset : offset + size - size % 16]):
        if tag == 0:
            break
        tags.setdefault(tag, []).append(value)
    return tags


def _offset(segments: List[Tuple[int, int, int, int]], address: int) -> int:
    for kind, offset, start, size in segments:
        if kind == PT_LOAD and start <= address < start + size:
            return offset + address - start
    return address


def _table(
    segments: List[Tuple[int, int, int, int]], tags: Dict[int, List[int]], at: int, number: int
) -> Tuple[int, int]:
    """Return the offset of a table of versions and the number of its entries."""
    count = tags.get(number, [0])[0] if at in tags else 0
    return (_offset(segments, tags[at][0]), min(count, MOST_VERSIONS)) if count else (0, 0)


def _wants(data: "mmap.mmap", strings: int, at: int, count: int) -> Needs:
    """Read the versions that an object needs: one entry for each library, with a list below it."""
    found = []
    for _ in range(count):
        _, versions, file, first, following = struct.unpack_from("<HHIII", data, at)
        named, below = [], at + first
        for _ in range(min(versions, MOST_VERSIONS)):
            _, flags, _, name, onward = struct.unpack_from("<IHHII", data, below)
            named += [] if flags & WEAK else [_string(data, strings + name)]
            below += onward
        found.append((_string(data, strings + file), tuple(named)))
        at += following
    return tuple(found)


def _defines(data: "mmap.mmap", strings: int, at: int, count: int) -> FrozenSet[str]:
    """Read the versions that an object has: the first name below each entry."""
    found = []
    for _ in range(count):
        _, flags, _, _, _, first, following = struct.unpack_from("<HHHHIII", data, at)
        (name,) = struct.unpack_from("<I", data, at + first)
        found += [] if flags & OF_THE_FILE else [_string(data, strings + name)]
        at += following
    return frozenset(found)


def _string(data: "mmap.mmap", offset: int) -> str:
    end = data.find(b"\0", offset, offset + LONGEST_NAME)
    return data[offset : max(end, offset)].decode("utf-8", "replace")


def _folders(paths: List[str]) -> Tuple[str, ...]:
    return tuple(folder for path in paths for folder in path.split(":") if folder)
