"""Find the SSH settings and keys of a container, and who made the keys."""

import os
import re
import stat
from typing import Dict, List, NamedTuple

from validate.probes.files import is_mounted, mount_points, names, read, under
from validate.probes.ssh_user import OF_USER, STATES, User

MADE_AT_START = tuple(state + "/keys-made-at-start" for state in STATES)
"""The entrypoint writes a line `HOST PATH` for each key that it makes."""

PROGRAMS = ("/usr/bin/ssh", "/usr/sbin/sshd", "/usr/bin/ssh-keygen")
PACKAGES = ("openssh-server", "openssh-client")

LISTS = ("allowusers", "denyusers", "allowgroups", "denygroups", "port", "listenaddress")
"""sshd prints each value of these on a line of its own, and uses all of them."""


MARK = "imagegen-answer"


def between_marks(command: str) -> str:
    """Return a command for a shell whose answer can be told from what start-up files print."""
    return "echo {0}; {1}; echo {0}".format(MARK, command)


def answer_of(printed: str) -> str:
    """Return what a marked command printed, without what start-up files print around it."""
    return printed.partition(MARK + "\n")[2].partition(MARK + "\n")[0]


def parse_settings(text: str) -> Dict[str, str]:
    """Parse `sshd -T` or `ssh -G` into setting -> value.

    If a setting has several lines, the first one counts; of lists all lines count.
    """
    found: Dict[str, str] = {}
    for line in text.splitlines():
        name, _, value = line.strip().partition(" ")
        name, value = name.lower(), value.strip()
        if name in LISTS and name in found:
            value = "{} {}".format(found.pop(name), value)
        found.setdefault(name, value)
    return found


def is_private_key(path: str) -> bool:
    """Return whether a file holds a private key, from its first line."""
    return "PRIVATE KEY-----" in read(path, 64)


def made_at_start(root: str, host: str) -> List[str]:
    """List the keys that this container's entrypoint made; keys of another host were baked in."""
    lines = [line for path in MADE_AT_START for line in read(under(root, path)).splitlines()]
    pairs = [line.split(None, 1) for line in lines]
    return [pair[1] for pair in pairs if len(pair) == 2 and pair[0] == host]


def homes(root: str) -> List[str]:
    """List /root and every folder of /home."""
    return ["/root"] + [os.path.join("/home", name) for name in names(under(root, "/home"))]


def user_keys(root: str) -> List[str]:
    """List the private keys in and below the .ssh folders of all users."""
    folders = [os.path.join(home, ".ssh") for home in homes(root)]
    return [path for folder in folders for path in _keys(root, folder)]


def any_user_key(root: str, user: User) -> bool:
    """Return whether the user has a key, also one that is no whole key."""
    there = names(under(root, os.path.join(user.home, ".ssh")))
    return bool(user_keys(root)) or any(re.match(r"id_\w+$", name) for name in there)


def host_keys(root: str) -> List[str]:
    """List the private host keys in the places of all sshds: `HostKey` may name any of them."""
    copies = os.path.join(OF_USER, "ssh")
    of_user = [path for path in _keys(root, OF_USER) if not path.startswith(copies + "/")]
    return _keys(root, "/etc/ssh") + of_user


def _keys(root: str, folder: str) -> List[str]:
    paths = []
    for top, folders, files in os.walk(under(root, folder)):
        inside = os.path.normpath(os.path.join(folder, os.path.relpath(top, under(root, folder))))
        paths += [os.path.join(inside, name) for name in sorted(files)]
        folders.sort()
    return [path for path in paths if is_private_key(under(root, path))]


def baked(root: str, keys: List[str], host: str) -> List[str]:
    """List the keys that came with the image: neither made at start nor mounted."""
    made, points = made_at_start(root, host), mount_points(root)
    return [key for key in keys if key not in made and not is_mounted(key, points)]


def closed_keys(root: str, user: User) -> List[str]:
    """List the keys of the user that the user may not read, such as those of a Secret of root."""
    folder = os.path.join(user.home, ".ssh")
    there = [name for name in names(under(root, folder)) if re.match(r"id_|authorized_keys", name)]
    there.sort(key=lambda name: not name.startswith("id_"))
    paths = [os.path.join(folder, name) for name in there]
    return [path for path in paths if not os.access(under(root, path), os.R_OK)]


class Mode(NamedTuple):
    """Hold who may do what with a path; `owner` is a user id."""

    path: str
    mode: int
    owner: int

    @property
    def open_to_write(self) -> bool:
        """Return whether the group or others may write."""
        return bool(self.mode & 0o022)

    @property
    def open_to_read(self) -> bool:
        """Return whether the group or others may do anything."""
        return bool(self.mode & 0o077)

    def __str__(self) -> str:
        return "{} {:04o} owner {}".format(self.path, self.mode, self.owner)


def mode_of(root: str, path: str) -> Mode:
    """Return mode and owner of a path, following links. Raises OSError if there is no such path."""
    found = os.stat(under(root, path))
    return Mode(path, stat.S_IMODE(found.st_mode), found.st_uid)


def mode_problems(root: str, user: User) -> List[str]:
    """List the modes that StrictModes of sshd, or the client, would refuse.

    Where the entrypoint has made private copies of the keys, those are looked at.
    """
    copies, owner = names(under(root, user.copies)), user.number
    folder = user.copies if copies else os.path.join(user.home, ".ssh")
    folders = [folder] if copies else [user.home, folder]
    existing = [f for f in folders if os.path.isdir(under(root, f))]
    modes = [mode_of(root, f) for f in existing]
    problems = ["{} can be written by others".format(m) for m in modes if m.open_to_write]
    for name in names(under(root, folder)):
        path = os.path.join(folder, name)
        if name == "authorized_keys" and mode_of(root, path).open_to_write:
            problems.append("{} can be written by others".format(mode_of(root, path)))
        if is_private_key(under(root, path)):
            modes.append(mode_of(root, path))
            if modes[-1].open_to_read:
                problems.append("{} can be read by others".format(modes[-1]))
    return problems + ["{}, not {}".format(m, owner) for m in modes if m.owner not in (owner, 0)]
