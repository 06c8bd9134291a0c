"""Check the user that a matrix asks for: no account of the system has its name or its number.

Sources: base-passwd of Debian (passwd.master, group.master); Debian Policy 9.2.2, "UID and GID
classes"; systemd, "Users, Groups, UIDs and GIDs".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from imagegen.config.document import dotted
from imagegen.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from imagegen.matrix.document import MatrixDocument

OF_THE_SYSTEM = """
adm audio backup bin cdrom crontab daemon dialout dip disk docker fax floppy games gnats irc
kmem kvm list lp lpadmin mail man messagebus munge news nobody nogroup operator plugdev
polkitd postfix proxy render root sasl sgx shadow src ssh sshd staff statd sudo sync sys
syslog tape tcpdump tty users utmp uucp uuidd video voice wheel www-data
"""
"""Accounts and groups that distributions bring; so are names that begin as BEGINS says."""
BEGINS = ("_", "systemd-")

FIRST, LAST = 1000, 2**31 - 1
"""The numbers of users; smaller ones are of the system, larger ones are no numbers of users."""
RESERVED = range(60000, 65536)
"""Numbers for services, for `nobody`, and for `none`."""


def check_user(document: MatrixDocument) -> Iterator[Problem]:
    """Report a user whose name or number is not free in the images."""
    user = document.data.get("user")
    if user is None:
        return
    name, uid = user["name"], int(user["uid"])
    if name in OF_THE_SYSTEM.split() or name.startswith(BEGINS):
        text = f"`{name}` is an account of the system, or a group"
        yield _problem(document, "name", text, "", "choose another name, such as `mpiuser`")
    if uid < FIRST:
        text = f"{uid} is the number of an account of the system"
        yield _problem(document, "uid", text, _numbers(), "choose a number such as 1000")
    elif uid in RESERVED or uid > LAST:
        text = f"{uid} is no number of a user"
        yield _problem(document, "uid", text, _numbers(), "choose a number such as 1000")


def _numbers() -> str:
    return f"users have {FIRST} to {RESERVED.start - 1}, and {RESERVED.stop} to {LAST}"


def _problem(document: MatrixDocument, key: str, text: str, evidence: str, hint: str) -> Problem:
    path: list[str | int] = ["user", key]
    known = (evidence,) if evidence else ()
    return Problem(text, document.file, document.line(path), dotted(path), known, hint)
