"""Compare installed files with their checksums, the most telling ones first, until time is up."""

import contextlib
import hashlib
import os
import stat
import threading
import time
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from validate.probes.files import is_mounted, mount_points, under
from validate.probes.package_lists import Excluded, Listed

CHUNK = 1 << 20
SLACK_SECONDS = 2.0
"""What an installer may take to write a file after it wrote its list."""
THREADS = 4


class Todo(NamedTuple):
    """Hold one file with every checksum that is right for it: two wheels may bring the same one."""

    rank: int
    size: int
    path: str
    listed: Tuple[Listed, ...]


class Seen(NamedTuple):
    """Hold what was found until the time was up.

    `first` are the files of rank 0 or lower; `first_left` of them were not reached.
    """

    changed: List[Listed]
    gone: List[Listed]
    files: int
    of_files: int
    size: int
    of_size: int
    first_left: int


def look(
    root: str,
    listed: Sequence[Listed],
    telling: Callable[[Listed], bool],
    left_out: Excluded,
    seconds: float,
) -> Seen:
    """Compare these files, for at most so many seconds.

    Files that were written after their package come first, then those that are `telling`.
    """
    deadline = time.monotonic() + seconds
    todo, gone, of_files = _sorted(root, listed, telling, left_out, deadline - seconds / 3)
    work = _Work(root, todo, deadline)
    work.run(min(THREADS, os.cpu_count() or 1))
    done = [todo[number] for number in sorted(work.done)]
    reached = len([one for one in done if one.rank <= 0])
    return Seen(
        changed=[todo[number].listed[0] for number in sorted(work.wrong)],
        gone=gone,
        files=len(done) + len(gone),
        of_files=of_files,
        size=sum(one.size for one in done),
        of_size=sum(one.size for one in todo),
        first_left=len([one for one in todo if one.rank <= 0]) - reached,
    )


def _sorted(
    root: str,
    listed: Sequence[Listed],
    telling: Callable[[Listed], bool],
    left_out: Excluded,
    deadline: float,
) -> Tuple[List[Todo], List[Listed], int]:
    """Return what there is to do, what is gone, and the number of files, those not reached too."""
    by_path: Dict[str, List[Listed]] = {}
    for one in sorted(listed, key=lambda one: not telling(one)):
        by_path.setdefault(one.path, []).append(one)
    todo, gone, points, not_counted = [], [], mount_points(root), 0
    for number, (path, ones) in enumerate(by_path.items()):
        if time.monotonic() > deadline:
            not_counted += len(by_path) - number
            break
        try:
            found = os.stat(under(root, path))
        except (FileNotFoundError, NotADirectoryError):
            if ones[0].of_wheel or not left_out(path):
                gone.append(ones[0])
            continue
        except OSError:  # below a folder that this user may not look into
            not_counted += 1
            continue
        if not stat.S_ISREG(found.st_mode) or is_mounted(path, points):
            continue
        if not os.access(under(root, path), os.R_OK):
            not_counted += 1
            continue
        late = found.st_mtime > max(one.since for one in ones) + SLACK_SECONDS
        rank = -1 if late else 0 if any(map(telling, ones)) else 1
        todo.append(Todo(rank, found.st_size, path, tuple(ones)))
    return sorted(todo), gone, len(todo) + len(gone) + not_counted


class _Work:
    """Compare files in a few threads: hashlib leaves the processor to others while it counts."""

    def __init__(self, root: str, todo: Sequence[Todo], deadline: float) -> None:
        self._root, self._todo, self._deadline = root, todo, deadline
        self._numbers = iter(range(len(todo)))
        self._lock = threading.Lock()
        self.done: Set[int] = set()
        self.wrong: Set[int] = set()

    def run(self, threads: int) -> None:
        """Compare until nothing is left to do, or the time is up; this thread is one of them."""
        started = []
        with contextlib.suppress(RuntimeError):  # where no more processes may start
            for _ in range(threads - 1):
                one = threading.Thread(target=self._one_by_one)
                one.start()
                started.append(one)
        self._one_by_one()
        for one in started:
            one.join()

    def _one_by_one(self) -> None:
        while time.monotonic() < self._deadline:
            with self._lock:
                number = next(self._numbers, None)
            if number is None:
                return
            right = self._is_right(self._todo[number])
            if right is None:
                return
            self.done.add(number)
            if not right:
                self.wrong.add(number)

    def _is_right(self, one: Todo) -> Optional[bool]:
        """Return whether a file is as one of its owners says; None if the time is up."""
        sums = {listed.algorithm: hashlib.new(listed.algorithm) for listed in one.listed}
        try:
            with open(under(self._root, one.path), "rb", buffering=0) as file:
                chunk = file.read(CHUNK)
                while chunk:
                    if time.monotonic() > self._deadline:
                        return None
                    for each in sums.values():
                        each.update(chunk)
                    chunk = file.read(CHUNK)
        except OSError:
            return False
        return any(sums[each.algorithm].hexdigest() == each.digest for each in one.listed)
