"""Tell the connections for which sshd has to be asked for its settings.

A block `Match` of sshd's settings holds for some users, hosts or addresses alone, so the answer for
this container is not the one for its peers. sshd_config(5): Match; sshd(8): -C.
"""

import ipaddress
import os
import re
import socket
from glob import glob
from typing import Iterator, List, NamedTuple, Tuple

from validate.probes.files import names, read, under
from validate.probes.ssh_user import SETTINGS, User

MAIN, FOLDER = "/etc/ssh/sshd_config", "/etc/ssh/sshd_config.d"
MOST = 8
"""The most connections that are asked for."""


class Connection(NamedTuple):
    """Hold who connects from where, as the option -C of sshd takes it."""

    user: str
    host: str = "localhost"
    address: str = "127.0.0.1"
    port: int = 2222

    @property
    def words(self) -> str:
        """Return the text for the option -C."""
        text = "user={},host={},addr={},laddr={},lport={}"
        here = "::1" if ":" in self.address else "127.0.0.1"
        return text.format(self.user, self.host, self.address, here, self.port)


def server_files(root: str, user: User) -> List[str]:
    """List the files that sshd of this user reads its settings from, the main one first."""
    if not user.is_root:
        return [SETTINGS]
    found = [os.path.join(FOLDER, name) for name in names(under(root, FOLDER))]
    found = [path for path in found if path.endswith(".conf")]
    return [MAIN, *found, *(path for path in _included(root) if path not in found)]


def _included(root: str) -> Iterator[str]:
    for line in re.findall(r"(?im)^\s*Include[\s=]+(.*)$", read(under(root, MAIN))):
        for word in line.replace('"', "").split():
            pattern = under(root, os.path.join("/etc/ssh", word))
            for path in sorted(glob(pattern)):
                yield os.path.join("/", os.path.relpath(path, root))


def has_blocks(root: str, files: List[str]) -> bool:
    """Return whether one of these files has a block that holds for some connections alone."""
    return any(re.search(r"(?im)^\s*Match\s", read(under(root, path))) for path in files)


def connections(root: str, user: User, port: int) -> List[Connection]:
    """Return the connection of this container to itself, and those that a block may hold for."""
    first = Connection(user.name, port=port)
    files = server_files(root, user)
    if not has_blocks(root, files):
        return [first]
    name = socket.gethostname()
    found = [first, first._replace(host=name, address=_address(name))]
    for path in files:
        for line in re.findall(r"(?im)^\s*Match\s+(.*)$", read(under(root, path))):
            values = dict(_criteria(line))
            addresses = map(_example, values.get("address", "!").split(","))
            found += [first._replace(host=name, address=one) for one in addresses]
            host = values.get("host", "").split(",")[0].replace("*", "a").replace("?", "a")
            found.append(found[1]._replace(host=host))
    return [one for one in dict.fromkeys(found) if one.address and one.host][:MOST]


def _address(name: str) -> str:
    try:
        return str(socket.gethostbyname(name))
    except OSError:
        return ""


def _criteria(line: str) -> Iterator[Tuple[str, str]]:
    """Split `Address 10.0.0.0/8 User root` into pairs."""
    words = re.split(r"[\s=]+", line.replace('"', "").strip())
    for at in range(0, len(words) - 1, 2):
        yield words[at].lower(), words[at + 1]


def _example(pattern: str) -> str:
    """Return an address that a pattern of sshd matches; empty for a negated or unreadable one."""
    if pattern.startswith("!"):
        return ""
    if "*" in pattern and ":" not in pattern:
        parts = [part if part.isdigit() else "1" for part in pattern.split(".")]
        return ".".join((parts + ["1"] * 4)[:4])
    try:
        network = ipaddress.ip_network(pattern, strict=False)
    except ValueError:
        return ""
    return str(network[1] if network.num_addresses > 1 else network[0])
