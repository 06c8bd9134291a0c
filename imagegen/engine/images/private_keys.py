"""Find private keys in the layers of an image, even those that a later layer deletes.

A key that a distribution package or a wheel lists as its own file is already public (a test
certificate, mostly) and is no secret. Keys that a package's install script makes are in no list.
"""

from __future__ import annotations

import csv
import io
import re
from typing import TYPE_CHECKING

from imagegen.engine.images.layers import layers

if TYPE_CHECKING:
    import tarfile
    from collections.abc import Iterator

    from imagegen.engine.client import Engine

_PRIVATE_KEY = re.compile(rb"^-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----", re.MULTILINE)
_HEAD_BYTES = 1024
_DPKG_LIST = re.compile(r"^/var/lib/dpkg/info/[^/]+\.list$")
_WHEEL_LIST = re.compile(r"^(?P<site>.*)/[^/]+\.dist-info/RECORD$")


def private_keys_in_layers(engine: Engine, ref: str) -> list[str]:
    """List the files that start as a private key in any layer and belong to no package.

    Each is `layer N: path`; N is 1 for the lowest layer.
    """
    found: list[tuple[int, str]] = []
    owned: set[str] = set()
    for number, (_, layer) in enumerate(layers(engine, ref), start=1):
        keys, files = scan_layer(layer)
        found += [(number, path) for path in keys]
        owned |= files
    return [f"layer {number}: {path}" for number, path in found if path not in owned]


def scan_layer(layer: tarfile.TarFile) -> tuple[list[str], set[str]]:
    """List the files of a layer that start as a private key, and those of package lists."""
    keys: list[str] = []
    owned: set[str] = set()
    for member in layer:
        content = layer.extractfile(member) if member.isreg() and member.size else None
        if content is None:
            continue
        path = "/" + member.name.removeprefix("./")
        if _is_list(path):
            owned.update(_listed(path, content.read()))
        elif _PRIVATE_KEY.search(content.read(_HEAD_BYTES)):
            keys.append(path)
    return keys, owned


def _is_list(path: str) -> bool:
    return bool(_DPKG_LIST.match(path) or _WHEEL_LIST.match(path))


def _listed(path: str, data: bytes) -> Iterator[str]:
    """Read absolute paths from dpkg's file list or a wheel's RECORD (PyPA recording format)."""
    text = data.decode(errors="replace")
    wheel = _WHEEL_LIST.match(path)
    if wheel is None:
        for line in text.splitlines():
            # Debian's lists have the names from before /lib and /bin became links into /usr.
            yield from (line, f"/usr{line}")
        return
    for row in csv.reader(io.StringIO(text)):
        if row:
            yield f"{wheel['site']}/{row[0]}"
