"""Read what the kernel's log says of GPUs: NVIDIA's XID errors.

Sources: NVIDIA, "XID Errors" (the catalogue of codes); Documentation/ABI/testing/dev-kmsg and
syslog(2).
"""

import ctypes
import os
import re
from typing import Dict, List, NamedTuple, Optional

from validate.probes.files import read, under

XID = re.compile(r"NVRM: Xid \(PCI:([0-9a-fA-F:.]+)\): (\d+)(?:, (.*))?")
KMSG_TIME = re.compile(r"^\d+,\d+,(\d+),")
DMESG_TIME = re.compile(r"^(?:<\d+>)?\[ *(\d+)\.\d+\]")
KMSG = "/dev/kmsg"
READ_ALL, MOST_BYTES = 3, 1 << 20
RECENT_SECONDS = 86400

HARDWARE: Dict[int, str] = {
    48: "uncorrectable error of its memory",
    61: "its microcontroller stopped",
    62: "its microcontroller halted",
    64: "a row of its memory could not be remapped",
    74: "NVLink error",
    79: "it fell off the bus",
    92: "too many corrected errors of its memory",
    95: "uncontained error of its memory",
    119: "its system processor (GSP) does not answer",
    120: "error of its system processor (GSP)",
    140: "unrecovered error of its memory",
    143: "it could not be initialized",
    145: "NVLink error",
    149: "NVLink error",
}
"""Codes that are the machine's. The others are mostly a program's: 13, 31, 43, 45 and 94 come when
one computes on a wrong address or is ended.
"""


class Xid(NamedTuple):
    """Hold an error: the GPU's address on the bus, the code, and its age in seconds, if known."""

    address: str
    code: int
    age: Optional[int]

    @property
    def of_the_machine(self) -> bool:
        """Return whether it came from the hardware within the last day, or nobody knows when."""
        return self.code in HARDWARE and (self.age is None or self.age < RECENT_SECONDS)

    def __str__(self) -> str:
        when = "" if self.age is None else " {} min ago".format(self.age // 60)
        what = HARDWARE.get(self.code, "")
        return "GPU {}: XID {}{}{}".format(self.address, self.code, what and " " + what, when)


def kernel_log(root: str) -> Optional[List[str]]:
    """Return the lines of the kernel's log; None if they cannot be read here."""
    if root != "/":
        there = os.path.isfile(under(root, KMSG))
        return read(under(root, KMSG), MOST_BYTES).splitlines() if there else None
    return _from_device() or _from_call()


def _from_device() -> Optional[List[str]]:
    found: List[str] = []
    try:
        device = os.open(KMSG, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        while True:
            try:
                found.append(os.read(device, 8192).decode("utf-8", "replace"))
            except BrokenPipeError:  # a record was overwritten: the next one is there
                continue
    except OSError:
        return found or None  # no record is left, or none may be read
    finally:
        os.close(device)


def _from_call() -> Optional[List[str]]:
    """Ask by syslog(2), which some machines allow without privileges."""
    buffer = ctypes.create_string_buffer(MOST_BYTES)
    try:
        count = ctypes.CDLL(None).klogctl(READ_ALL, buffer, MOST_BYTES)
    except (AttributeError, OSError):
        return None
    return buffer.raw[:count].decode("utf-8", "replace").splitlines() if count >= 0 else None


def xids(root: str, lines: List[str]) -> List[Xid]:
    """List the XID errors in the lines of a kernel's log."""
    words = read(under(root, "/proc/uptime")).split()
    uptime = float(words[0]) if words else 0.0
    found = []
    for line in lines:
        match = XID.search(line)
        if match:
            found.append(Xid(match.group(1), int(match.group(2)), _age(line, uptime)))
    return found


def _age(line: str, uptime: float) -> Optional[int]:
    kmsg, dmesg = KMSG_TIME.match(line), DMESG_TIME.match(line)
    if not uptime or not (kmsg or dmesg):
        return None
    seconds = int(kmsg.group(1)) / 1e6 if kmsg else float(dmesg.group(1)) if dmesg else 0.0
    return max(0, int(uptime - seconds))
