"""Explain errors of a container that may do little: what it lacks, and how to launch it.

A check that meets one of these is not broken: the container is, or was launched so.
"""

import contextlib
import errno
from typing import NamedTuple, Optional, Tuple

from validate.remedy import Remedy, at_launch


class Restriction(NamedTuple):
    """Hold the cause and remedy of an error, and the check that reports it if it looks there."""

    cause: str
    remedy: Remedy
    check: str = ""


TEMPORARY = Restriction(
    "no folder for temporary files can be written",
    at_launch("docker run --tmpfs /tmp:mode=1777 IMAGE   # a pod: an emptyDir at /tmp"),
    "os.tmp",
)
READ_ONLY = Restriction(
    "the root file system is read-only",
    at_launch("docker run IMAGE   # without --read-only; a pod: readOnlyRootFilesystem: false"),
)
PROCESSES = Restriction(
    "the container may not start more processes or threads",
    at_launch("docker run --pids-limit -1 IMAGE   # a pod: podPidsLimit of kubelet"),
)
MEMORY = Restriction(
    "the container may not use more memory",
    at_launch("docker run --memory 8g IMAGE   # a pod: resources.limits.memory"),
)
OPEN_FILES = Restriction(
    "the container may not open more files",
    at_launch("docker run --ulimit nofile=1048576 IMAGE   # a pod: LimitNOFILE of containerd"),
)
DISK = Restriction(
    "the disk of the container is full",
    at_launch("docker run --tmpfs /tmp IMAGE   # and space in the engine's folder"),
)
NOT_ALLOWED = Restriction(
    "the user or the capabilities of the container do not allow it",
    at_launch("docker run --user 0 IMAGE   # a pod: securityContext.runAsUser"),
)

BY_NUMBER = {
    errno.EROFS: READ_ONLY,
    errno.EAGAIN: PROCESSES,
    errno.ENOMEM: MEMORY,
    errno.EMFILE: OPEN_FILES,
    errno.ENFILE: OPEN_FILES,
    errno.ENOSPC: DISK,
    errno.EDQUOT: DISK,
    errno.EACCES: NOT_ALLOWED,
    errno.EPERM: NOT_ALLOWED,
}
BY_WORDS: Tuple[Tuple[str, Restriction], ...] = (
    ("No usable temporary directory", TEMPORARY),
    ("can't start new thread", PROCESSES),
    ("Cannot fork", PROCESSES),
    ("Resource temporarily unavailable", PROCESSES),
    ("Too many open files", OPEN_FILES),
    ("Cannot allocate memory", MEMORY),
    ("No space left on device", DISK),
    ("Read-only file system", READ_ONLY),
)
"""What programs print, in the words of strerror(3) and of Python."""


def ends_first(pid: int) -> None:
    """Let the kernel end this process before the checks themselves, if memory runs out.

    Source: proc_pid_oom_score_adj(5); whoever started a process may raise it.
    """
    with contextlib.suppress(OSError), open("/proc/{}/oom_score_adj".format(pid), "w") as file:
        file.write("1000")


def restriction(error: Optional[BaseException]) -> Optional[Restriction]:
    """Return what the container lacks where an error shows it; None for any other error."""
    if isinstance(error, MemoryError):
        return MEMORY
    numbered = BY_NUMBER.get(error.errno or 0) if isinstance(error, OSError) else None
    return restriction_in(str(error)) or numbered


def restriction_in(text: str) -> Optional[Restriction]:
    """Return what the container lacks where a program's message shows it."""
    return next((found for words, found in BY_WORDS if words in text), None)
