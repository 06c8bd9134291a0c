"""Decide which settings of sshd and ssh keep root from logging in by key without a question.

Each wrong setting has a command line that corrects it. Sources: sshd_config(5), ssh_config(5).
"""

import fnmatch
import os
import re
from typing import Callable, Dict, List, NamedTuple, Tuple

from validate.probes.files import read, under

Settings = Dict[str, str]

START_UP_FILE = "/root/.bashrc"
"""bash reads this file also for a command of a session (bash(1), INVOCATION)."""
SPEAKS = re.compile(r"^\s*(echo|printf|cat|exit|exec)\b", re.MULTILINE)

OWN_KEYS = ".ssh/authorized_keys /run/imagegen/ssh/authorized_keys"
FILES = {"sshd": "/etc/ssh/sshd_config", "ssh": "/etc/ssh/ssh_config"}
OF_ROOT = "/root/.ssh/config"
"""ssh reads this file before the other one, and uses the first value that it finds."""


class Rule(NamedTuple):
    """Decide whether the value of a setting is good.

    `mend` is a good value; it is empty if the setting has to be removed.
    """

    who: str
    name: str
    well: Callable[[str], bool]
    mend: str


class WrongSetting(NamedTuple):
    """Hold a setting with a wrong value."""

    who: str
    name: str
    value: str
    mend: str

    def __str__(self) -> str:
        return "{} {} {}".format(self.who, self.name, self.value or "not set")


def rules(port: str, root: str) -> List[Rule]:
    """Return the rules for a container whose sshd listens on `port`; an unset value is empty."""

    def one_of(*values: str) -> Callable[[str], bool]:
        return lambda value: value in values

    return [
        Rule("sshd", "PermitRootLogin", one_of("yes", "prohibit-password", "without-password"),
             "prohibit-password"),
        Rule("sshd", "PubkeyAuthentication", one_of("yes"), "yes"),
        Rule("sshd", "Port", one_of(port), port),
        Rule("sshd", "AllowUsers", lambda value: not value or _names_root(value), ""),
        Rule("sshd", "DenyUsers", lambda value: not _names_root(value), ""),
        Rule("sshd", "AllowGroups", lambda value: not value or _names_root(value), ""),
        Rule("sshd", "DenyGroups", lambda value: not _names_root(value), ""),
        Rule("sshd", "AuthenticationMethods", _key_is_enough, "any"),
        Rule("sshd", "ForceCommand", one_of("", "none"), "none"),
        Rule("sshd", "AuthorizedKeysFile", lambda value: _keys_are_there(value, root), OWN_KEYS),
        Rule("ssh", "Port", one_of(port), port),
        Rule("ssh", "StrictHostKeyChecking", one_of("no", "false", "off", "accept-new"), "no"),
        Rule("ssh", "UserKnownHostsFile", one_of("/dev/null"), "/dev/null"),
        Rule("ssh", "ProxyJump", one_of("", "none"), "none"),
        Rule("ssh", "ProxyCommand", one_of("", "none"), "none"),
    ]  # fmt: skip


def _names_root(value: str) -> bool:
    """Return whether a list of patterns, each a name or `name@host`, matches root.

    The group of root has the same name.
    """
    return any(fnmatch.fnmatch("root", word.partition("@")[0]) for word in value.split())


def _key_is_enough(value: str) -> bool:
    return value in ("", "any") or "publickey" in value.split()


def _keys_are_there(value: str, root: str) -> bool:
    """Return whether the entrypoint writes one of these key files, or one exists already."""
    for word in value.split():
        path = word.replace("%h", "/root").replace("%u", "root")
        path = os.path.normpath(os.path.join("/root", path))
        if path == "/root/.ssh/authorized_keys" or os.path.isfile(under(root, path)):
            return True
    return not value


def wrong_settings(server: Settings, client: Settings, port: str, root: str) -> List[WrongSetting]:
    """List the settings in force that keep root out, or make ssh ask or go elsewhere."""
    has = {"sshd": server, "ssh": client}
    found = [(one, has[one.who].get(one.name.lower(), "")) for one in rules(port, root)]
    return [WrongSetting(r.who, r.name, value, r.mend) for r, value in found if not r.well(value)]


def remedy(root: str, one: WrongSetting) -> str:
    """Return the command line that corrects a setting in the file that is read first.

    A running sshd is told to read its settings again.
    """
    again = "; kill -HUP $(cat /run/sshd.pid)" if one.who == "sshd" else ""
    if not one.mend:
        files = "/etc/ssh/sshd_config /etc/ssh/sshd_config.d/*.conf"
        return "sed -i '/^ *{}/Id' {}{}".format(one.name, files, again)
    path = FILES[one.who]
    if one.who == "ssh" and one.name.lower() in read(under(root, OF_ROOT)).lower():
        path = OF_ROOT
    # The first line, because sshd and ssh use the first value.
    return "sed -i '1i {} {}' {}{}".format(one.name, one.mend, path, again)


def session_problem(output: str, root: str) -> Tuple[str, str]:
    """Return cause and remedy of a session that printed something, or that ended without a message.

    A session should print nothing. Both are empty if the cause is unknown.
    """
    if "from LD_PRELOAD" in output or "/etc/ld.so.preload" in output:
        return "a library that is loaded into every process is not there", "validate --only os"
    if "setlocale" in output:
        remedy = "sed -i -E 's/^(LANG|LC_ALL)=.*/\\1=C.UTF-8/' /etc/environment"
        return "the environment names a locale that is not in the image", remedy
    if "currently not available" in output:
        return "the shell of root lets nobody in", "usermod --shell /bin/bash root"
    if SPEAKS.search(read(under(root, START_UP_FILE))):
        remedy = "sed -i '1i case $- in *i*) ;; *) return ;; esac' {}".format(START_UP_FILE)
        return "{} speaks, or ends, where no terminal is".format(START_UP_FILE), remedy
    return "", ""
