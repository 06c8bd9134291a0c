"""Read files of a container, or of a tree that stands for one, and find mounts."""

import os
import re
from typing import Dict, Iterator, List, Sequence, Set

DISABLED = "disabled."
"""What the name of a file begins with that a remedy took out of use."""


def under(root: str, path: str) -> str:
    """Return where an absolute path of the container is below `root`."""
    return os.path.join(root, path.lstrip("/"))


def read(path: str, limit: int = 1 << 20) -> str:
    """Return the text of a file, stripped; empty if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(limit).strip()
    except OSError:
        return ""


def header_version(path: str, macros: Sequence[str]) -> str:
    """Return the version that the macros of a C header define; empty if it defines none."""
    text = read(path)
    found = [re.search(r"#define {}\s+(\d+)".format(name), text) for name in macros]
    return ".".join(match.group(1) for match in found if match)


def names(path: str) -> List[str]:
    """Return the sorted names in a folder; empty if there is no such folder."""
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []


def distinct_files(paths: Sequence[str]) -> List[str]:
    """Drop the paths that lead to the same file as an earlier path."""
    found: Dict[str, str] = {}
    for path in paths:
        found.setdefault(os.path.realpath(path), path)
    return list(found.values())


def mount_points(root: str) -> Set[str]:
    """Return every mount point except `/` (proc_pid_mountinfo(5), fifth field)."""
    lines = read(under(root, "/proc/self/mountinfo")).splitlines()
    points = {line.split()[4].replace("\\040", " ") for line in lines if len(line.split()) > 4}
    return points - {"/"}


def is_mounted(path: str, points: Set[str]) -> bool:
    """Return whether a path comes from a mount, and so is not part of the image."""
    while path not in ("", "/"):
        if path in points:
            return True
        path = os.path.dirname(path)
    return False


def walk(root: str, top: str, limit: int = 20000) -> Iterator[str]:
    """Yield the paths in the container of the image's own files below `top`, at most `limit`."""
    points = mount_points(root)
    if is_mounted(top, points):
        return
    for folder, folders, files in os.walk(under(root, top)):
        inside = "/" + os.path.relpath(folder, root) if root != "/" else folder
        folders[:] = sorted(f for f in folders if os.path.join(inside, f) not in points)
        for name in sorted(files):
            path = os.path.join(inside, name)
            if path not in points:
                limit -= 1
                if limit < 0:
                    return
                yield path


def started_at(root: str) -> float:
    """Return when process 1 started, in seconds since the epoch; 0 if unknown.

    Source: proc_pid_stat(5), field 22.
    """
    fields = read(under(root, "/proc/1/stat")).rpartition(")")[2].split()
    boot = [
        line.split()[1]
        for line in read(under(root, "/proc/stat"), 1 << 24).splitlines()
        if line.startswith("btime ")
    ]
    if len(fields) < 20 or not boot:
        return 0.0
    return float(boot[0]) + float(fields[19]) / os.sysconf("SC_CLK_TCK")
