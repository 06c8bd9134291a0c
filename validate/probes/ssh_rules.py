"""Decide which settings of sshd and ssh keep a user from logging in by key without a question.

Each wrong setting has a command line that corrects it. Sources: sshd_config(5), ssh_config(5).
"""

import fnmatch
import os
import re
from shlex import quote
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from validate.probes.aside import moved_out, pattern
from validate.probes.files import names, read, under
from validate.probes.programs import parse_environment
from validate.probes.ssh_user import ROOT, User
from validate.probes.sshd_connections import has_blocks, server_files
from validate.remedy import Remedy, in_image, in_shell, only_look

Settings = Dict[str, str]

START_UP_FILE = ".bashrc"
"""In the home. bash reads this file also for a command of a session (bash(1), INVOCATION)."""
SPEAKS = re.compile(r"^\s*(echo|printf|cat|exit|exec)\b", re.MULTILINE)

OWN_KEYS = ".ssh/authorized_keys {}/authorized_keys"
OWN_SESSION = "/usr/local/bin/imagegen-session"
"""It gives the environment of the container to sessions of a user other than root."""
FILES = {"sshd": "/etc/ssh/sshd_config", "ssh": "/etc/ssh/ssh_config"}
ADDED_UP = ("Port",)
"""Settings of which sshd uses every line, and not only the first one."""
OWN_CHOICES = ["X11Forwarding", "AllowAgentForwarding", "ForwardX11", "ForwardAgent"]
OWN_CHOICES += ["StrictHostKeyChecking", "UserKnownHostsFile"]
"""Settings that keep nobody out: images of imagegen have a rule for them, others need none."""
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
    """Hold a setting with a wrong value, and the address of the peer that it holds for."""

    who: str
    name: str
    value: str
    mend: str
    peer: str = ""

    def __str__(self) -> str:
        to = " for {}".format(self.peer) if self.peer else ""
        return "{} {} {}{}".format(self.who, self.name, self.value or "not set", to)


def rules(port: str, root: str, user: User = ROOT) -> List[Rule]:
    """Return the rules for a container whose sshd listens on `port`; an unset value is empty."""

    def one_of(*values: str) -> Callable[[str], bool]:
        return lambda value: value in values

    def names(value: str) -> bool:
        return _names(value, (user.name,))

    def names_group(value: str) -> bool:
        return _names(value, user.groups)

    by_root = Rule("sshd", "PermitRootLogin", one_of("yes", "prohibit-password",
                   "without-password"), "prohibit-password")  # fmt: skip
    return [
        *([by_root] if user.is_root else []),
        Rule("sshd", "PubkeyAuthentication", one_of("yes"), "yes"),
        Rule("sshd", "Port", lambda value: set(value.split()) == {port}, port),
        Rule("sshd", "ListenAddress", lambda value: _for_others(value, port), ""),
        Rule("sshd", "AllowUsers", lambda value: not value or names(value), ""),
        Rule("sshd", "DenyUsers", lambda value: not names(value), ""),
        Rule("sshd", "AllowGroups", lambda value: not value or names_group(value), ""),
        Rule("sshd", "DenyGroups", lambda value: not names_group(value), ""),
        Rule("sshd", "AuthenticationMethods", _key_is_enough, "any"),
        Rule("sshd", "ForceCommand", one_of("", "none", *([] if user.is_root else [OWN_SESSION])),
             "none"),
        Rule("sshd", "AuthorizedKeysFile", lambda value: _keys_are_there(value, root, user),
             OWN_KEYS.format(user.copies)),
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


def _names(value: str, wanted: Sequence[str]) -> bool:
    """Return whether a list of patterns, each a name or `name@host`, matches one of these names."""
    patterns = [word.partition("@")[0] for word in value.split()]
    return any(fnmatch.fnmatch(name, one) for name in wanted for one in patterns)


def _for_others(value: str, port: str) -> bool:
    """Return whether sshd listens on this port alone, and not for this container alone."""
    pairs = [word.rpartition(":")[::2] for word in value.split() if ":" in word]
    others = [host for host, _ in pairs if not re.match(r"\[?(127\.|::1\]?$)", host)]
    return not pairs or ({at for _, at in pairs} == {port} and bool(others))


def _key_is_enough(value: str) -> bool:
    return value in ("", "any") or "publickey" in value.split()


def _keys_are_there(value: str, root: str, user: User) -> bool:
    """Return whether the entrypoint writes one of these key files, or one exists already."""
    own = os.path.join(user.home, ".ssh/authorized_keys")
    for word in value.split():
        path = word.replace("%h", user.home).replace("%u", user.name)
        path = os.path.normpath(os.path.join(user.home, path))
        if path == own or os.path.isfile(under(root, path)):
            return True
    return not value


def wrong_settings(
    servers: Sequence[Tuple[str, Settings]],
    client: Settings,
    port: str,
    root: str,
    user: User = ROOT,
) -> List[WrongSetting]:
    """List the settings in force that keep the user out, or make ssh ask or go elsewhere.

    `servers` are sshd's settings for connections, each with the address of the peer; the first is
    this container itself.
    """
    found: List[WrongSetting] = []
    for number, (peer, server) in enumerate(servers):
        has = {"sshd": server, "ssh": client}
        for one in rules(port, root, user):
            value = has[one.who].get(one.name.lower(), "")
            known = [(each.who, each.name, each.value) for each in found]
            if not one.well(value) and (one.who, one.name, value) not in known:
                wrong = WrongSetting(one.who, one.name, value, one.mend, peer if number else "")
                found.append(wrong)
    return _without_echo(found, root, user)


def _without_echo(found: List[WrongSetting], root: str, user: User) -> List[WrongSetting]:
    """Leave ListenAddress out where no file sets it: sshd then works it out from the ports."""
    texts = [read(under(root, path)) for path in server_files(root, user)]
    is_set = any(re.search(r"(?im)^\s*ListenAddress\b", text) for text in texts)
    ports = any((one.who, one.name) == ("sshd", "Port") for one in found)
    return [one for one in found if is_set or not ports or one.name != "ListenAddress"]


def remedy(root: str, one: WrongSetting) -> str:
    """Return the command line that corrects a setting of root in the file that is read first.

    A running sshd is told to read its settings again.
    """
    again = READ_AGAIN if one.who == "sshd" else ""
    files = server_files(root, ROOT)
    if one.who == "sshd" and (not one.mend or one.name in ADDED_UP or has_blocks(root, files)):
        # A comment: a list of names grows with each line, and so do the ports; what stands in a
        # block is stronger than what stands first.
        others = [path for path in files if not path.endswith("/imagegen.conf")]
        away = "sed -i 's|^[[:space:]]*{}[[:space:]=]|# &|I' {}"
        away = away.format(one.name, " ".join(map(quote, others)))
        return away + ("; " + _first(one, FILES[one.who]) if one.mend else "") + again
    path = FILES[one.who]
    if one.who == "ssh" and one.name.lower() in read(under(root, OF_ROOT)).lower():
        path = OF_ROOT
    return _first(one, path) + again


def of_user(wrong: Sequence[WrongSetting], root: str, user: User) -> Remedy:
    """Return what corrects settings of a user who may not write them: the recipe."""
    files = " ".join([*server_files(root, user), FILES["ssh"]])
    text = "imagegen build   # what sets {} goes: see {}"
    names = ", ".join(dict.fromkeys(one.name for one in wrong))
    return in_image(text.format(names, files), look="/usr/sbin/sshd -T; ssh -G localhost")


def _first(one: WrongSetting, path: str) -> str:
    """Return the line that puts a setting first in a file: sshd and ssh use the first value."""
    return "sed -i '1i {} {}' {}".format(one.name, one.mend, path)


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
    for path in server_files(root, ROOT):
        text, line = read(under(root, path)), r"(?im)^ *HostKey +{} *$"
        named = [key for key in keys if re.search(line.format(re.escape(key)), text)]
        lines += ["sed -i -E 's|^ *HostKey +{}|# &|I' {}".format(pattern(key), quote(path))
                  for key in named]  # fmt: skip
    where = "   # in the recipe: take out the step that makes them; others are made at start"
    return in_shell("; ".join([*lines, "sh -c {}".format(START)]) + where)


def private(root: str, user: User) -> Remedy:
    """Return the line that gives a home folder and its keys to their owner alone."""
    owner = "chown -R {0}:{0} {{0}} && ".format(user.name) if user.is_root else ""
    lines = ["chown root {0}; chmod go-w {0}".format(quote(user.home))] if user.is_root else []
    folder = os.path.join(user.home, ".ssh")
    if os.path.isdir(under(root, folder)) and (user.is_root or not names(under(root, user.copies))):
        lines.append((owner + "chmod -R go-rwx {0}").format(quote(folder)))
    if names(under(root, user.copies)):
        lines.append((owner + "chmod -R go-rwx {0}").format(user.copies))
    return in_shell("; ".join(lines))


def carried(root: str, values: Dict[str, Optional[str]], user: User = ROOT) -> Remedy:
    """Return the line after which sessions have these variables, or, for None, not any more.

    Sessions get them from /etc/environment, by pam_env; those of a user other than root from a file
    that the entrypoint writes.
    """
    if not user.is_root:
        return in_shell("sh -c {}".format(START))
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


def session_problem(output: str, root: str, home: str = "/root") -> Tuple[str, Remedy]:
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
    path = os.path.join(home, START_UP_FILE)
    if SPEAKS.search(read(under(root, path))):
        remedy = "sed -i '1i case $- in *i*) ;; *) return ;; esac' {}".format(path)
        return "{} speaks, or ends, where no terminal is".format(path), in_shell(remedy)
    return "", Remedy()
