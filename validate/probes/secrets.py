"""Find what must not be in an image: credentials, tokens, private keys, leftovers of the build."""

import os
import re
from typing import List, NamedTuple, Sequence

from validate.probes.files import is_mounted, mount_points, names, under, walk

DISTRIBUTION = (
    *("bin", "boot", "dev", "lib", "lib32", "lib64", "libx32", "media", "mnt", "proc", "run"),
    *("sbin", "sys", "usr", "var"),
)
"""Folders of / that belong to the distribution or to the container. People use any other folder."""
PLACES = ("/usr/local/etc", "/usr/src", "/var/tmp")
"""Places in these folders where people leave files too."""

LEFT_OUT = ("/etc/ssl/", "/opt/imagegen/env/", "/etc/ca-certificates/")
LARGEST_BYTES = 1 << 16
APT_LISTS = "/var/lib/apt/lists"

FILES = (
    ".aws/credentials",
    ".netrc",
    ".git-credentials",
    ".docker/config.json",
    ".kube/config",
    ".huggingface/token",
    ".config/gcloud/credentials.db",
)

PATTERNS = (
    (
        "private key",
        re.compile(rb"^-----BEGIN [A-Z ]*PRIVATE KEY-----\s+[A-Za-z0-9+/=:]", re.MULTILINE),
    ),
    ("AWS access key", re.compile(rb"\bAKIA[0-9A-Z]{16}\b")),
    ("GitHub token", re.compile(rb"\bgh[pousr]_[A-Za-z0-9]{36}")),
    ("Hugging Face token", re.compile(rb"\bhf_[A-Za-z0-9]{30,}")),
)


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
            if path not in left_out and not path.startswith(LEFT_OUT):
                kind = _kind(root, path)
                found += [Secret(kind, path)] if kind else []
    return found


def _kind(root: str, path: str) -> str:
    if path.endswith(tuple("/" + name for name in FILES)):
        return "credentials"
    real = under(root, path)
    try:
        if (
            os.path.islink(real)
            or not os.path.isfile(real)
            or os.path.getsize(real) > LARGEST_BYTES
        ):
            return ""
        with open(real, "rb") as file:
            data = file.read()
    except OSError:
        return ""
    return next((kind for kind, pattern in PATTERNS if pattern.search(data)), "")


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
