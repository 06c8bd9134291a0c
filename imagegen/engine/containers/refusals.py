"""Decide what to leave out when the engine refuses to start a container.

The engine cannot exceed its own limits: a rootless engine, or one in a guest, cannot raise memlock,
and a machine without RDMA hardware has no /dev/infiniband. `validate` reports what is missing.
"""

from __future__ import annotations

import re
import resource
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_RLIMIT = re.compile(
    r"error setting rlimit type (?P<number>\d+): operation not permitted"  # runc
    r"|setrlimit `RLIMIT_(?P<name>[A-Z]+)`: Operation not permitted"  # crun
)
_DEVICE = re.compile(r'custom device "([^"]+)": (no such file or directory|not a device node)')


@dataclass(frozen=True)
class Relaxed:
    """Hold the limits and devices that are left, and one line that says what was left out."""

    ulimits: Mapping[str, int]
    devices: tuple[str, ...]
    note: str


def relax(refusal: str, ulimits: Mapping[str, int], devices: tuple[str, ...]) -> Relaxed | None:
    """Find what to try after a refusal; None where it is not about a limit or a device."""
    if limit := _RLIMIT.search(refusal):
        name = rlimit_name(int(limit["number"])) if limit["number"] else limit["name"].lower()
        if name in ulimits:
            rest = {key: value for key, value in ulimits.items() if key != name}
            note = f"started without `--ulimit {name}={ulimits[name]}`: the engine may not set it"
            return Relaxed(rest, devices, note)
    if device := _DEVICE.search(refusal):
        missing = tuple(path for path in devices if path.split(":")[0] == device[1])
        if missing:
            left = tuple(path for path in devices if path not in missing)
            note = f"started without `--device={missing[0]}`: {device[2]} on the engine's host"
            return Relaxed(ulimits, left, note)
    return None


def rlimit_name(number: int) -> str:
    """Find the engine's name of a limit from the kernel's number, for example `memlock` for 8."""
    names = [name for name in dir(resource) if name.startswith("RLIMIT_")]
    # Linux has one number under two names (NOFILE, OFILE); the engine knows the first.
    return next((n[7:].lower() for n in sorted(names) if getattr(resource, n) == number), "")
