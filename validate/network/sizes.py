"""Read and write sizes as nccl-tests takes them: `8..1G`, `1M`, `8,1K,1M`."""

import re
from typing import List

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
ELEMENT = 4
"""Bytes of a float."""
MOST = 4 << 30
SIZE = re.compile(r"^(\d+)\s*([KMG]?)(?:i?B)?$", re.IGNORECASE)


def size_of(text: str) -> int:
    """Return the bytes of `8`, `64K`, `1MiB` or `1G`. Raises ValueError for anything else."""
    match = SIZE.match(text.strip())
    if not match:
        raise ValueError("`{}` is no size such as 8, 64K or 1G".format(text.strip()))
    size = int(match.group(1)) * UNITS[match.group(2).upper()]
    if not ELEMENT <= size <= MOST or size % ELEMENT:
        text = "`{}` is not between 4 bytes and 4G, in steps of 4: a float has 4 bytes"
        raise ValueError(text.format(match.group(0).strip()))
    return size


def sizes_of(text: str) -> List[int]:
    """Return the sizes of a list, in order; `A..B` doubles from A to B. Raises ValueError."""
    found = set()
    for part in text.split(","):
        first, dots, last = part.partition("..")
        low, high = size_of(first), size_of(last if dots else first)
        if low > high:
            raise ValueError("`{}` goes down: the smaller size comes first".format(part.strip()))
        while low < high:
            found.add(low)
            low *= 2
        found.add(high)
    return sorted(found)


def in_units(size: int) -> str:
    """Return a size in the largest unit that has no fraction: `64K`."""
    for unit in ("G", "M", "K"):
        if size % UNITS[unit] == 0 and size:
            return "{}{}".format(size // UNITS[unit], unit)
    return "{} B".format(size)
