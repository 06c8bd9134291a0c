"""Find what must not be in an image: credentials, tokens, private keys, leftovers of the build."""

import os
import re
import shlex
from typing import List, Mapping, NamedTuple, Sequence

from validate.probes.aside import moved_out
from validate.probes.files import is_mounted, mount_points, names, under, walk
from validate.probes.secret_rules import (
    CREDENTIALS,
    IN_URL,
    LARGEST_BYTES,
    PRIVATE_KEY,
    kind_of_file,
    kind_of_variable,
)

DISTRIBUTION = (
    *("bin", "boot", "dev", "lib", "lib32", "lib64", "libx32", "media", "mnt", "proc", "run"),
    *("sbin", "sys", "usr", "var"),
)
"""Folders of / that belong to the distribution or to the container. People use any other folder."""
PLACES = (
    *("/usr/local", "/usr/src", "/var/tmp", "/var/www", "/var/opt", "/var/backups", "/var/lib"),
    *("/run/secrets", "/var/spool", "/mnt", "/media"),
)
"""Places in these folders where people leave files too."""

LEFT_OUT = (
    *("/etc/ssl/", "/etc/ca-certificates/", "/opt/imagegen/"),
    *("/var/lib/dpkg/", "/var/lib/apt/"),
)
WHOLE_FILES = (PRIVATE_KEY, CREDENTIALS)
"""Kinds whose files hold nothing but a secret."""
TAKE_OUT = {
    IN_URL: ("sed -Ei 's#(://)([^/@:[:space:]]*:[^/@[:space:]]+|[[:alnum:]_.-]{{20,}})@#\\1#g' {}"),
}
"""Kind of a secret -> what takes it out of a file. Other files hold more than a secret."""
APT_LISTS = "/var/lib/apt/lists"
OF_PACKAGES = re.compile(r"/(?:site|dist)-packages/|/lib/python[\d.]+/(?:test|idlelib)/|\.pyc$")
"""Files of Python packages: what is in their tests is public."""


class Secret(NamedTuple):
    """Hold the kind and the place of a secret, never the secret itself."""

    kind: str
    path: str

    def __str__(self) -> str:
        return "{} in {}".format(self.kind, self.path)


def places(root: str) -> List[str]:
    """List where people leave files: folders, and files directly in /."""
    top = [os.path.join("/", name) for name in names(root or "/") if name not in DISTRIBUTION]
    return [path for path in top if not os.path.islink(under(root, path))] + list(PLACES)


def secrets(root: str, left_out: Sequence[str]) -> List[Secret]:
    """List the secrets in the image's own files; mounts are not the image's.

    `left_out` are paths that another check looks at.
    """
    found = []
    for place in places(root):
        for path in walk(root, place) if os.path.isdir(under(root, place)) else [place]:
            if path in left_out or path.startswith(LEFT_OUT) or OF_PACKAGES.search(path):
                continue
            kind = kind_of_file(path, _content(under(root, path)))
            found += [Secret(kind, path)] if kind else []
    return found


def in_variables(env: Mapping[str, str], known: Mapping[str, str]) -> List[Secret]:
    """List the variables that hold a secret; those that the recipe sets are no secrets."""
    kinds = [(kind_of_variable(name, env[name]), name) for name in sorted(env) if name not in known]
    return [Secret(kind, name) for kind, name in kinds if kind]


def _content(path: str) -> bytes:
    """Return a file's content; empty if it is a link, too large or cannot be read."""
    try:
        if os.path.islink(path) or not os.path.isfile(path):
            return b""
        if os.path.getsize(path) > LARGEST_BYTES:
            return b""
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def take_out(found: Sequence[Secret]) -> str:
    """Return a line that takes secrets out of a container: addresses lose their passwords.

    Files that hold nothing else are moved out of it. Empty if a file has to be edited by hand.
    """
    whole = [one.path for one in found if one.kind in WHOLE_FILES]
    edited = [one for one in found if one.kind not in WHOLE_FILES]
    lines = [TAKE_OUT.get(one.kind, "").format(shlex.quote(one.path)) for one in edited]
    return "; ".join([moved_out(whole)] * bool(whole) + lines) if all(lines) else ""


def leftovers(root: str, started: float) -> List[str]:
    """List leftovers of the build: caches, package lists, files in /tmp from before the start.

    Mounts are not the image's.
    """
    found, points = [], mount_points(root)
    for folder in ("/tmp", "/var/tmp"):
        for name in names(under(root, folder)):
            path = os.path.join(folder, name)
            if is_mounted(path, points):
                continue
            if os.lstat(under(root, path)).st_mtime < started:
                found.append(path)
    for path in ("/root/.cache/pip", "/root/.bash_history"):
        if os.path.exists(under(root, path)) and not is_mounted(path, points):
            found.append(path)
    lists = set(names(under(root, APT_LISTS))) - {"lock", "partial", "auxfiles"}
    # apt of Debian 11 and older does not make the folder itself: only what is in it may go.
    return found + [os.path.join(APT_LISTS, name) for name in sorted(lists)]
