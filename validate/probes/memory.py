"""Read how much memory the container may use, has used, and which processes it lost by that.

Sources: the kernel's admin-guide/cgroup-v2 and cgroup-v1/memory.
"""

import os
import re
from typing import List, NamedTuple, Tuple

from validate.probes.files import read, under
from validate.probes.limits import bytes_in_words

TREE = "/sys/fs/cgroup"
NONE = 1 << 60
"""cgroup v1 has a limit of this size or more where there is none."""
UNKNOWN = -1
NEARLY = 0.95
"""The share of its limit that a container has used when its end counts as one for want of memory.
It counts only where the kernel does not say how many processes it ended: pages of files count too.
"""


class Memory(NamedTuple):
    """Hold the limit of a control group and the most it has used, in bytes, and its lost processes.

    `limit` is -1 if there is none, `used` and `ended` are -1 if they are unknown.
    """

    limit: int
    used: int
    ended: int

    @property
    def ran_out(self) -> bool:
        """Return whether the kernel ended a process of the container for want of memory."""
        if self.ended != UNKNOWN:
            return self.ended > 0
        return self.limit != UNKNOWN and self.used >= NEARLY * self.limit

    def __str__(self) -> str:
        ended = " and the kernel ended {} for want of it".format(_processes(self.ended))
        ended = ended if self.ended > 0 else ""
        if self.limit == UNKNOWN:
            return "the container has no limit of its own,{}".format(ended or " nor lost a process")
        used = bytes_in_words(self.used) if self.used != UNKNOWN else "an unknown amount"
        text = "the container may use {}, it has used {}{}"
        return text.format(bytes_in_words(self.limit), used, ended and "," + ended)


def _processes(count: int) -> str:
    return "a process" if count == 1 else "{} processes".format(count)


def memory(root: str) -> Memory:
    """Return the memory of the container: of its group, or the tightest one above it."""
    found = [one for one in map(_of_folder, _folders(root)) if one != Memory(-1, -1, -1)]
    tight = sorted((one for one in found if one.limit != UNKNOWN), key=lambda one: one.limit)
    best = (tight or found or [Memory(-1, -1, -1)])[0]
    return best._replace(ended=max([best.ended, *(one.ended for one in found[:1])]))


def _folders(root: str) -> List[str]:
    """List the folders of the container's group and of those above it, the nearest first."""
    folders = []
    for line in read(under(root, "/proc/self/cgroup")).splitlines():
        _, names, path = (line.split(":", 2) + ["", ""])[:3]
        if names and "memory" not in names.split(","):
            continue
        top = TREE + ("/memory" if names else "")
        while path.strip("/"):
            folders.append(top + path)
            path = os.path.dirname(path.rstrip("/"))
    return [under(root, one) for one in (*folders, TREE, TREE + "/memory")]


def _of_folder(folder: str) -> Memory:
    limit, used = _first(folder, _LIMITS), _first(folder, _USED)
    text = read(os.path.join(folder, "memory.events")) + "\n"
    text += read(os.path.join(folder, "memory.oom_control"))
    ended = re.search(r"^oom_kill (\d+)", text, re.MULTILINE)
    limit = UNKNOWN if limit >= NONE else limit
    return Memory(limit, used, int(ended.group(1)) if ended else UNKNOWN)


_LIMITS = ("memory.max", "memory.limit_in_bytes")
_USED = ("memory.peak", "memory.max_usage_in_bytes", "memory.current", "memory.usage_in_bytes")


def _first(folder: str, names: Tuple[str, ...]) -> int:
    texts = [read(os.path.join(folder, name)) for name in names]
    return next((int(text) for text in texts if text.isdigit()), UNKNOWN)


def free_on_host(root: str) -> int:
    """Return the bytes that the machine has left (MemAvailable); -1 if unknown."""
    found = re.search(r"MemAvailable:\s+(\d+) kB", read(under(root, "/proc/meminfo")))
    return int(found.group(1)) * 1024 if found else UNKNOWN
