"""Tell who logs in between the containers of a job: the user that the checks run as.

An image for another user than root has settings of sshd for that user, and a folder with that
user's host keys, private copies of keys, and environment of sessions.
"""

import os
from typing import List, NamedTuple, Tuple

from validate.probes.account import home_of_root
from validate.probes.files import read, under

SETTINGS = "/etc/ssh/imagegen-user.conf"
"""sshd of a user other than root reads this file; images for root do not have it."""
OF_ROOT, OF_USER = "/run/imagegen", "/run/imagegen-user"
"""The entrypoint keeps here what it makes for root, and for another user."""
STATES = (OF_ROOT, OF_USER)


class User(NamedTuple):
    """Hold an account: its name, number and home, and the names of its groups."""

    name: str = "root"
    number: int = 0
    home: str = "/root"
    groups: Tuple[str, ...] = ("root",)

    @property
    def is_root(self) -> bool:
        """Return whether this is root."""
        return self.number == 0

    @property
    def state(self) -> str:
        """Return the folder of what the entrypoint makes for this user."""
        return OF_ROOT if self.is_root else OF_USER

    @property
    def copies(self) -> str:
        """Return the folder of the private copies of keys that were mounted with open modes."""
        return self.state + "/ssh"


ROOT = User()


def current(root: str) -> User:
    """Return the user that the checks run as; without an account, its number is its name."""
    number = os.geteuid()
    if number == 0:
        return ROOT._replace(home=home_of_root(root))
    for fields in _rows(root, "/etc/passwd", 7):
        if fields[2] == str(number):
            return User(fields[0], number, fields[5], _groups(root, fields[0], fields[3]))
    return User(str(number), number, "/", ())


def _rows(root: str, path: str, columns: int) -> List[List[str]]:
    lines = [line.split(":") for line in read(under(root, path)).splitlines()]
    return [fields for fields in lines if len(fields) >= columns]


def _groups(root: str, name: str, number: str) -> Tuple[str, ...]:
    rows = _rows(root, "/etc/group", 4)
    return tuple(row[0] for row in rows if row[2] == number or name in row[3].split(","))


def has_sshd(root: str, user: User) -> bool:
    """Return whether the image has an sshd for this user."""
    return user.is_root or os.path.isfile(under(root, SETTINGS))
