"""Find out whether the container has started: its entrypoint makes the keys and starts sshd."""

import os
import time
from typing import Dict

from validate.probes.files import read, under

NAMES = (b"imagegen-entrypoint", b"sh\0/usr/sbin/sshd\0")
"""What process 1 is while a container starts, also where it starts with sshd itself."""
MOST_SECONDS = 20.0


def starting(root: str) -> bool:
    """Return whether process 1 still makes the keys; it ends with an exec of the command."""
    try:
        with open(os.path.join(root, "proc/1/cmdline"), "rb") as file:
            line = file.read()
            return any(name in line for name in NAMES)
    except OSError:
        return False


def await_start(root: str, seconds: float = MOST_SECONDS) -> None:
    """Wait until the entrypoint is done, at most `seconds`: the checks then say what is wrong."""
    end = time.time() + seconds
    while starting(root) and time.time() < end:
        time.sleep(0.05)


def environment_at_start(root: str) -> Dict[str, str]:
    """Return the environment of process 1; empty if that is the host's, as with `--pid host`."""
    if _view("1", root) != _view("self", root):
        return {}
    lines = read(under(root, "/proc/1/environ")).split("\0")
    return dict(line.partition("=")[::2] for line in lines if "=" in line)


def _view(pid: str, root: str) -> str:
    """Return the namespace of mounts that a process sees (namespaces(7)); empty if unknown."""
    try:
        return os.readlink(under(root, "/proc/{}/ns/mnt".format(pid)))
    except OSError:
        return ""
