"""Decide which settings of sshd and ssh keep root from logging in by key without a question.

Each wrong setting has a command line that corrects it. Sources: sshd_config(5), ssh_config(5).
"""

import fnmatch
import os
import re
from shlex import quote
from typing import Callable, Dict, List, NamedTuple, Optional, Tuple

from validate.probes.aside import moved_out, pattern
from validate.probes.files import names, read, under
from validate.probes.programs import parse_environment
from validate.probes.ssh import PRIVATE_COPIES
from validate.remedy import Remedy, in_image, in_shell, only_look

Settings = Dict[str, str]

START_UP_FILE = "/root/.bashrc"
"""bash reads this file also for a command of a session (bash(1), INVOCATION)."""
SPEAKS = re.compile(r"^\s*(echo|printf|cat|exit|exec)\b", re.MULTILINE)

OWN_KEYS = ".ssh/authorized_keys /run/imagegen/ssh/authorized_keys"
FILES = {"sshd": "/etc/ssh/sshd_config", "ssh": "/etc/ssh/ssh_config"}
SERVER_FILES = ("/etc/ssh/sshd_config",)
ADDED_UP = ("Port",)
"""Settings of which sshd uses every line, and not only the first one."""
OWN_CHOICES = (
    *("X11Forwarding", "AllowAgentForwarding", "ForwardX11", "ForwardAgent"),
    *("StrictHostKeyChecking", "UserKnownHostsFile"),
)
"""Settings for which images of imagegen have a rule, and others the distribution's default: they
keep nobody out, or a launch gives them.
"""
READ_AGAIN = "; [ ! -s /run/sshd.pid ] || kill -HUP $(cat /run/sshd.pid)"
PAM = "/etc/pam.d/sshd"
SHARED_PAM = ("/etc/pam.d/common-session", "/etc/pam.d/common-session-noninteractive")
ENVIRONMENT = "/etc/environment"
START = "'IMAGEGEN_SSHD=off exec /usr/local/bin/imagegen-entrypoint true'"
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
        Rule("sshd", "X11Forwarding", one_of("", "no"), "no"),
        Rule("sshd", "AllowAgentForwarding", one_of("", "no"), "no"),
        Rule("ssh", "Port", one_of(port), port),
        Rule("ssh", "StrictHostKeyChecking", one_of("no", "false", "off", "accept-new"), "no"),
        Rule("ssh", "UserKnownHostsFile", one_of("/dev/null"), "/dev/null"),
        Rule("ssh", "ForwardX11", one_of("", "no"), "no"),
        Rule("ssh", "ForwardAgent", one_of("", "no"), "no"),
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
    again = READ_AGAIN if one.who == "sshd" else ""
    if not one.mend or one.name in ADDED_UP:
        # A comment: a list of names grows with each line, and so do the ports.
        files = [*SERVER_FILES]
        files += [path for path in _server_folder(root) if not path.endswith("/imagegen.conf")]
        away = "sed -i 's|^ *{}[ =]|# &|I' {}".format(one.name, " ".join(map(quote, files)))
        if one.who == "sshd" and not one.mend:
            return away + again
        if one.who == "sshd":
            return "{}; {}{}".format(away, _first(one, FILES[one.who]), again)
    path = FILES[one.who]
    if one.who == "ssh" and one.name.lower() in read(under(root, OF_ROOT)).lower():
        path = OF_ROOT
    return _first(one, path) + again


def _first(one: WrongSetting, path: str) -> str:
    """Return the line that puts a setting first in a file: sshd and ssh use the first value."""
    return "sed -i '1i {} {}' {}".format(one.name, one.mend, path)


def _server_folder(root: str) -> List[str]:
    folder = "/etc/ssh/sshd_config.d"
    found = [os.path.join(folder, name) for name in names(under(root, folder))]
    return [path for path in found if path.endswith(".conf")]


def starts_again(said: str) -> Remedy:
    """Return what lets `sshd -t` pass, from what it printed: folders, modes and wrong lines."""
    folder = re.search(r"Missing privilege separation directory: (\S+)", said)
    if folder:
        return in_shell("mkdir -p -m 0755 {}".format(folder.group(1)))
    if re.search(r"must be owned by root and not group or world-writable", said):
        return in_shell("chown root:root /run/sshd; chmod 0755 /run/sshd")
    wrong = re.findall(r"^(/\S+?):? line (\d+): ", said, re.MULTILINE)
    if wrong:
        lines = ["sed -i '{}s|^|# |' {}".format(number, quote(path)) for path, number in wrong]
        return in_shell("; ".join(dict.fromkeys(lines)), look="/usr/sbin/sshd -t")
    return Remedy()


def made_anew(root: str, keys: List[str]) -> Remedy:
    """Return the line that takes keys of the image out of use, and makes others as a start does.

    A setting that names such a key is taken out with it.
    """
    files = [name for key in keys for name in (key, key + ".pub")
             if os.path.lexists(under(root, name))]  # fmt: skip
    lines = [moved_out(files)]
    for path in [*SERVER_FILES, *_server_folder(root)]:
        named = [key for key in keys if re.search(_host_key(key), read(under(root, path)))]
        lines += ["sed -i -E 's|^ *HostKey +{}|# &|I' {}".format(pattern(key), quote(path))
                  for key in named]  # fmt: skip
    where = "   # in the recipe: take out the step that makes them; others are made at start"
    return in_shell("; ".join([*lines, "sh -c {}".format(START)]) + where)


def _host_key(key: str) -> str:
    return r"(?im)^ *HostKey +{} *$".format(re.escape(key))


def private(root: str, home: str) -> Remedy:
    """Return the line that gives a home folder and its keys to their owner alone."""
    folder = os.path.join(home, ".ssh")
    lines = ["chown root {0}; chmod go-w {0}".format(quote(home))]
    if os.path.isdir(under(root, folder)):
        lines.append("chown -R root:root {0} && chmod -R go-rwx {0}".format(quote(folder)))
    if names(under(root, PRIVATE_COPIES)):
        lines.append("chown -R root:root {0} && chmod -R go-rwx {0}".format(PRIVATE_COPIES))
    return in_shell("; ".join(lines))


def carried(root: str, values: Dict[str, Optional[str]]) -> Remedy:
    """Return the line after which sessions have these variables, or, for None, not any more.

    Sessions get them from /etc/environment, by pam_env.
    """
    lines = []
    if not re.search(r"(?m)^[^#]*pam_env\.so", read(under(root, PAM))):
        lines.append("echo 'session required pam_env.so' >> {}".format(PAM))
    there = parse_environment(read(under(root, ENVIRONMENT)))
    for name, value in values.items():
        if there.get(name) is not None and there.get(name) != value:
            lines.append("sed -i 's|^ *{}=|# &|' {}".format(name, ENVIRONMENT))
        if value is not None and there.get(name) != value:
            entry = '{}="{}"'.format(name, value)
            lines.append("echo {} >> {}".format(quote(entry), ENVIRONMENT))
    return in_shell("; ".join(lines)) if lines else in_image("imagegen build")


def limits_kept(root: str) -> Remedy:
    """Return the line after which sessions keep the limits of sshd, which are the container's."""
    found = [path for path in (PAM, *SHARED_PAM)
             if re.search(r"(?m)^[^#]*pam_limits\.so", read(under(root, path)))]  # fmt: skip
    if found:
        return in_shell("sed -i '/pam_limits.so/s/^/# /' {}".format(" ".join(found)))
    return in_shell(
        "kill $(cat /run/sshd.pid); sleep 1; /usr/sbin/sshd   # with this shell's limits"
    )


def session_problem(output: str, root: str) -> Tuple[str, Remedy]:
    """Return cause and remedy of a session that printed something, or that ended without a message.

    A session should print nothing. Both are empty if the cause is unknown.
    """
    if "from LD_PRELOAD" in output or "/etc/ld.so.preload" in output:
        return "a library that is loaded into every process is not there", only_look(
            "validate --only os"
        )
    if "setlocale" in output:
        remedy = "sed -i -E 's/^(LANG|LC_ALL)=.*/\\1=C.UTF-8/' /etc/environment"
        return "the environment names a locale that is not in the image", in_shell(remedy)
    if "currently not available" in output:
        return "the shell of root lets nobody in", in_shell("usermod --shell /bin/bash root")
    if SPEAKS.search(read(under(root, START_UP_FILE))):
        remedy = "sed -i '1i case $- in *i*) ;; *) return ;; esac' {}".format(START_UP_FILE)
        return "{} speaks, or ends, where no terminal is".format(START_UP_FILE), in_shell(remedy)
    return "", Remedy()
