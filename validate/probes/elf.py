"""Read from the headers of an ELF file what it is called and which libraries it needs (elf(5))."""

import struct
from typing import IO, Dict, List, NamedTuple, Optional, Tuple

PT_LOAD, PT_DYNAMIC = 1, 2
DT_NEEDED, DT_STRTAB, DT_SONAME, DT_RPATH, DT_RUNPATH = 1, 5, 14, 15, 29
LONGEST_NAME = 4096


class Elf(NamedTuple):
    """Hold the dynamic section of one shared object; `rpath` and `runpath` may have `$ORIGIN`."""

    soname: str
    needed: Tuple[str, ...]
    rpath: Tuple[str, ...]
    runpath: Tuple[str, ...]


def read_elf(path: str) -> Optional[Elf]:
    """Read the dynamic section of a 64-bit little-endian object; None for anything else."""
    try:
        with open(path, "rb") as file:
            return _read(file)
    except (OSError, struct.error):
        return None


def _read(file: IO[bytes]) -> Optional[Elf]:
    head = file.read(64)
    if head[:6] != b"\x7fELF\x02\x01" or len(head) < 64:
        return None
    segments = _segments(file, head)
    dynamic = [(offset, size) for kind, offset, _, size in segments if kind == PT_DYNAMIC]
    if not dynamic:
        return None
    tags = _tags(file, *dynamic[0])
    if DT_STRTAB not in tags:
        return None
    strings = _offset(segments, tags[DT_STRTAB][0])

    def strings_of(tag: int) -> List[str]:
        return [_string(file, strings + at) for at in tags.get(tag, [])]

    return Elf(
        soname="".join(strings_of(DT_SONAME)[:1]),
        needed=tuple(strings_of(DT_NEEDED)),
        rpath=_folders(strings_of(DT_RPATH)),
        runpath=_folders(strings_of(DT_RUNPATH)),
    )


def _segments(file: IO[bytes], head: bytes) -> List[Tuple[int, int, int, int]]:
    """Return (type, file offset, address, size in the file) of each program header."""
    start, size, count = struct.unpack_from("<Q", head, 32) + struct.unpack_from("<HH", head, 54)
    file.seek(start)
    table = file.read(size * count)
    found = []
    for at in range(0, size * count, size):
        kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", table, at)
        found.append((kind, offset, address, length))
    return found


def _tags(file: IO[bytes], offset: int, size: int) -> Dict[int, List[int]]:
    file.seek(offset)
    tags: Dict[int, List[int]] = {}
    for tag, value in struct.iter_unpack("<qQ", file.read(size - size % 16)):
        if tag == 0:
            break
        tags.setdefault(tag, []).append(value)
    return tags


def _offset(segments: List[Tuple[int, int, int, int]], address: int) -> int:
    for kind, offset, start, size in segments:
        if kind == PT_LOAD and start <= address < start + size:
            return offset + address - start
    return address


def _string(file: IO[bytes], offset: int) -> str:
    file.seek(offset)
    return file.read(LONGEST_NAME).partition(b"\0")[0].decode("utf-8", "replace")


def _folders(paths: List[str]) -> Tuple[str, ...]:
    return tuple(folder for path in paths for folder in path.split(":") if folder)
