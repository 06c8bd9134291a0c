"""Parse /etc/os-release (os-release(5))."""

import shlex
from typing import Dict

from validate.probes.files import read, under


def read_os_release(root: str) -> Dict[str, str]:
    """Return the assignments of the file; empty if there is no such file."""
    text = read(under(root, "/etc/os-release")) or read(under(root, "/usr/lib/os-release"))
    found = {}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if equals and not name.startswith("#"):
            found[name.strip()] = "".join(shlex.split(value))
    return found
