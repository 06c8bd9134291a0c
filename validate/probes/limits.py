"""Measure what the container may use: limits, shared memory, control groups, capabilities."""

import os
import resource
from typing import Dict, List

from validate.probes.files import read, under

CAPABILITIES = {12: "NET_ADMIN", 14: "IPC_LOCK", 19: "SYS_PTRACE", 21: "SYS_ADMIN", 23: "SYS_NICE"}
"""Bits of CapEff that matter to training (capabilities(7))."""

OF_SERVICES = {
    0: "CHOWN",
    6: "SETGID",
    7: "SETUID",
    10: "NET_BIND_SERVICE",
    18: "SYS_CHROOT",
    24: "SYS_RESOURCE",
    29: "AUDIT_WRITE",
}
"""Bits of CapEff that sshd uses."""

UNLIMITED = -1
KINDS = {
    "memlock": resource.RLIMIT_MEMLOCK,
    "nofile": resource.RLIMIT_NOFILE,
    "nproc": resource.RLIMIT_NPROC,
    "stack": resource.RLIMIT_STACK,
}


def soft_limit(kind: str) -> int:
    """Return the soft limit of this process, in bytes or a number of files; -1 for no limit."""
    value = resource.getrlimit(KINDS[kind])[0]
    return UNLIMITED if value == resource.RLIM_INFINITY else value


def shm_bytes(root: str) -> int:
    """Return the size of /dev/shm in bytes, used or not; 0 if there is none."""
    try:
        found = os.statvfs(under(root, "/dev/shm"))
    except OSError:
        return 0
    return found.f_frsize * found.f_blocks


def capabilities(root: str) -> List[str]:
    """List the effective capabilities of this process that matter to training."""
    return _effective(root, CAPABILITIES)


def capabilities_of_services(root: str) -> List[str]:
    """List the effective capabilities of this process that sshd uses."""
    return _effective(root, OF_SERVICES)


def _effective(root: str, names: Dict[int, str]) -> List[str]:
    for line in read(under(root, "/proc/self/status")).splitlines():
        if line.startswith("CapEff:"):
            bits = int(line.split()[1], 16)
            return [name for bit, name in sorted(names.items()) if bits >> bit & 1]
    return []


def seccomp(root: str) -> str:
    """Return in one word whether system calls of this process are filtered (proc(5))."""
    words = {"0": "off", "1": "strict", "2": "filters"}
    for line in read(under(root, "/proc/self/status")).splitlines():
        if line.startswith("Seccomp:"):
            return words.get(line.split()[1], "unknown")
    return "unknown"


def control_group(root: str) -> Dict[str, str]:
    """Return the limits of the container's control group (v2, else v1); unset ones are left out."""
    places = {
        "cpus": ("cpu.max", "cpu/cpu.cfs_quota_us"),
        "memory": ("memory.max", "memory/memory.limit_in_bytes"),
        "cpuset": ("cpuset.cpus.effective", "cpuset/cpuset.cpus"),
        "pids": ("pids.max", "pids/pids.max"),
    }
    found = {}
    for name, files in places.items():
        texts = [read(under(root, "/sys/fs/cgroup/" + file)) for file in files]
        value = next((text for text in texts if text), "")
        if value and not _no_limit(value):
            found[name] = value
    return found


def _no_limit(value: str) -> bool:
    """Return whether a value means that there is no limit.

    cgroup v2 has `max`; v1 has -1, or for memory the largest page-aligned number.
    """
    return value.startswith(("max", "-1")) or (value.isdigit() and int(value) >= 1 << 60)


def bytes_in_words(number: int) -> str:
    """Write a number of bytes with a unit: `64 MiB`; -1 is `unlimited`."""
    if number == UNLIMITED:
        return "unlimited"
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if number >= size:
            return "{:.4g} {}".format(number / size, unit)
    return "{} B".format(number)
