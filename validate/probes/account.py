"""Read whether root has an account that may log in: passwd, shadow, nsswitch.conf, PAM's modules.

Sources: passwd(5), shadow(5), nsswitch.conf(5), pam.conf(5).
"""

import glob
import os
import re
import time
from typing import List, NamedTuple

from validate.probes.dpkg import install_again, package_of
from validate.probes.files import read, under
from validate.remedy import Remedy, in_image, in_shell

PASSWD, SHADOW, SWITCH = "/etc/passwd", "/etc/shadow", "/etc/nsswitch.conf"
OF_FILES = ("files", "compat", "systemd", "altfiles", "db")
"""Services of nsswitch.conf that read accounts from this container."""
ROOT_LINE = "root:x:0:0:root:/root:/bin/bash"
SECONDS_OF_A_DAY = 86400


class Problem(NamedTuple):
    """Hold what is wrong with an account, why, and what corrects it; empty if nothing is."""

    seen: str = ""
    cause: str = ""
    remedy: Remedy = Remedy()


def root_missing(root: str) -> Problem:
    """Say why no program finds an account of root; empty if there is one."""
    services = _services(root, "passwd")
    if services and not any(one in OF_FILES for one in services):
        line = "sed -i 's/^passwd:.*/passwd: files/' {}".format(SWITCH)
        seen = "{} takes accounts from {}, not from {}".format(SWITCH, " ".join(services), PASSWD)
        return Problem(seen, "{} leaves local accounts out".format(SWITCH), in_shell(line))
    fields = _fields(root, PASSWD)
    if not fields:
        line = "sed -i '1i {}' {}".format(ROOT_LINE, PASSWD)
        if not os.path.exists(under(root, PASSWD)):
            line = "echo '{}' > {}   # and the accounts of services".format(ROOT_LINE, PASSWD)
        cause = "a build step removed its line: no program can name the user that runs it"
        return Problem("there is no account `root` in {}".format(PASSWD), cause, in_shell(line))
    if len(fields) < 7 or fields[2] != "0":
        line = "sed -i 's#^root:.*#{}#' {}".format(ROOT_LINE, PASSWD)
        seen = "{} says `{}`".format(PASSWD, ":".join(fields))
        return Problem(seen, "that is no account of the user 0", in_shell(line))
    return Problem()


def _services(root: str, database: str) -> List[str]:
    """Return the services that nsswitch.conf names for a database; empty if it names none."""
    found = re.search(r"^\s*{}:(.*)$".format(database), read(under(root, SWITCH)), re.MULTILINE)
    return re.sub(r"\[[^]]*\]|#.*", " ", found.group(1)).split() if found else []


def _fields(root: str, path: str) -> List[str]:
    lines = read(under(root, path)).splitlines()
    return next((line.split(":") for line in lines if line.startswith("root:")), [])


def home_of_root(root: str) -> str:
    """Return the home of root; `/root` if its account does not say."""
    fields = _fields(root, PASSWD)
    return fields[5] if len(fields) > 5 and fields[5] else "/root"


def login_refused(root: str) -> Problem:
    """Say why the account of root may not log in: its shell, its dates, its lock."""
    fields = (_fields(root, PASSWD) + [""] * 7)[:7]
    shell = fields[6]
    if shell and not os.access(under(root, shell), os.X_OK):
        text = "the shell of root, {}, is missing or cannot be run".format(shell)
        return Problem(text, text, _shell_again(root, shell))
    if not os.path.isfile(under(root, SHADOW)):
        return Problem("no " + SHADOW, "{} is missing: PAM knows no account".format(SHADOW),
                       in_shell("pwconv"))  # fmt: skip
    return _by_shadow((_fields(root, SHADOW) + [""] * 9)[:9], time.time() / SECONDS_OF_A_DAY)


def _shell_again(root: str, shell: str) -> Remedy:
    """Return the line that gives root a shell: another one that is there, else its package."""
    there = [one for one in ("/bin/bash", "/bin/sh") if os.access(under(root, one), os.X_OK)]
    package = package_of(root, shell)[0]
    if package or not there:
        return in_shell(install_again(package or "bash"))
    return in_shell("sed -i '/^root:/s#{}$#{}#' {}".format(shell, there[0], PASSWD))


def _by_shadow(fields: List[str], today: float) -> Problem:
    password, changed, longest, late, ends = (fields[at] for at in (1, 2, 4, 6, 7))
    if not fields[0]:
        text = "root has no line in {}".format(SHADOW)
        return Problem(text, text, in_shell("pwconv"))
    if ends.isdigit() and int(ends) <= today:
        text = "the account of root has expired ({}, field 8)".format(SHADOW)
        return Problem(text, text, in_shell("chage -E -1 root"))
    if changed == "0":
        text = "the password of root has expired: a session has to change it first ({}, field 3)"
        return Problem("password expired", text.format(SHADOW), in_shell("chage -d -1 root"))
    if changed.isdigit() and longest.isdigit() and int(changed) + int(longest) < today:
        grace = " and its time to change it too" if late.isdigit() else ""
        text = "the password of root has expired{} ({}, field 5)".format(grace, SHADOW)
        return Problem("password expired", text, in_shell("chage -M 99999 -I -1 -d -1 root"))
    if password.startswith("!"):
        text = "the account of root is locked ({}, field 2)".format(SHADOW)
        return Problem(text, text, in_shell("usermod -p '*' root"))
    return Problem()


FOLDERS = ("/lib/*/security", "/lib/security", "/usr/lib/*/security", "/lib64/security",
           "/usr/lib64/security", "/usr/lib/security")  # fmt: skip


def missing_modules(root: str, service: str = "sshd") -> List[str]:
    """List the modules that PAM's settings of a service name and that are not in the image."""
    found = []
    for line in _lines_of(root, service, 4):
        # An optional module may be missing; so may one that begins with a dash.
        module = re.match(r"\s*(account|auth|session|password)\s+(\[.*?\]|\S+)\s+(\S+\.so)", line)
        if module and module.group(2) != "optional" and "module_unknown" not in module.group(2):
            name = module.group(3)
            places = [name] if name.startswith("/") else [f + "/" + name for f in FOLDERS]
            if not any(glob.glob(under(root, place)) for place in places):
                found.append(name)
    return list(dict.fromkeys(found))


def _lines_of(root: str, service: str, depth: int) -> List[str]:
    lines = []
    for line in read(under(root, "/etc/pam.d/" + service)).splitlines():
        other = re.match(r"(?:@include|\S+\s+(?:include|substack))\s+(\S+)", line)
        lines += _lines_of(root, other.group(1), depth - 1) if other and depth else [line]
    return lines


def by_pam(root: str) -> Problem:
    """Say why PAM refuses root: a module that is missing, the account, or a rule of a module."""
    gone = missing_modules(root)
    if gone:
        text = "PAM module missing: {} (named in /etc/pam.d/sshd)".format(", ".join(gone))
        line = "; ".join("sed -i '/{}/s/^/# /' /etc/pam.d/*".format(name) for name in gone)
        return Problem(text, text, in_shell(line))
    found = login_refused(root)
    if found.seen and "locked" not in found.cause:  # PAM lets a key in all the same
        return found
    rules = [
        line
        for line in read(under(root, "/etc/security/access.conf")).splitlines()
        if line.lstrip().startswith("-")
    ]
    if rules and any("pam_access.so" in line for line in _lines_of(root, "sshd", 4)):
        text = "pam_access refuses root: `{}` in /etc/security/access.conf".format(rules[0])
        line = "sed -i '/pam_access.so/s/^/# /' /etc/pam.d/sshd"
        return Problem(text, text, in_shell(line))
    text = "PAM refuses the account of root: see the lines `account` of /etc/pam.d/sshd"
    return Problem(text, text, in_image("imagegen build   # brings the settings of PAM again"))
