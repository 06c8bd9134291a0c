"""Read which signal ended a command, and what the loader printed for every program."""

import re
import signal
from typing import List, NamedTuple

OF_A_SHELL = 128
"""A shell, and mpirun, end with this number plus that of the signal that ended their command."""
DEADLY = {
    int(one)
    for one in (
        *(signal.SIGILL, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGKILL),
        *(signal.SIGSEGV, signal.SIGXCPU, signal.SIGXFSZ, signal.SIGSYS),
    )
}
RANK_ENDED = re.compile(r"exited on signal (\d+)")
"""What mpirun says of a rank."""

COMPLAINT = re.compile(
    r"^ERROR: ld\.so: object '([^']*)'(?: from (\S+))? cannot be "
    r"(?:preloaded \((.*)\): |loaded as audit interface: (.*); )ignored\.$",
    re.MULTILINE,
)
"""What the loader prints in every process, if LD_PRELOAD, LD_AUDIT or /etc/ld.so.preload names
something that it cannot load.
"""


class Complaint(NamedTuple):
    """Hold a library that cannot be loaded into a process, the setting that names it, and why."""

    library: str
    setting: str
    reason: str


def signal_of(code: int, printed: str) -> int:
    """Return the signal that ended a command, or its command or rank; 0 if none did."""
    if code < 0:
        return -code
    rank = RANK_ENDED.search(printed) if code else None
    if rank:
        return int(rank.group(1))
    return code - OF_A_SHELL if code - OF_A_SHELL in DEADLY else 0


def name_of(number: int) -> str:
    """Return a signal in words: `signal 9 (SIGKILL)`."""
    try:
        return "signal {} ({})".format(number, signal.Signals(number).name)
    except ValueError:
        return "signal {}".format(number)


def complaints(text: str) -> List[Complaint]:
    """List what the loader could not load into a process; none twice."""
    found = [
        Complaint(one.group(1), one.group(2) or "LD_AUDIT", one.group(3) or one.group(4) or "")
        for one in COMPLAINT.finditer(text)
    ]
    return list(dict.fromkeys(found))


def without_complaints(text: str) -> str:
    """Drop the lines of the loader: the program that was asked did not print them."""
    return "".join(line for line in text.splitlines(True) if not COMPLAINT.match(line.rstrip("\n")))
