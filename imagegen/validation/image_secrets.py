"""Find secrets in an image: in its layers, also those that a later layer deletes, and its settings.

What is a secret is decided by the rules of `validate`. A file that a distribution package or a
wheel lists as its own is already public (a test certificate, mostly). Files that a package's
install script makes are in no list, and in /etc packages leave settings that people fill in.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from imagegen.config.payload import expose_validate
from imagegen.engine.images import local_images
from imagegen.engine.images.layers import layers

if TYPE_CHECKING:
    import tarfile
    from collections.abc import Iterable, Iterator

    from imagegen.engine.answers import ImageAnswer
    from imagegen.engine.client import Engine

_HEAD_BYTES = 1024
_PRIVATE_KEY = "private key"
_DPKG_LIST = re.compile(r"^/var/lib/dpkg/info/[^/]+\.list$")
_WHEEL_LIST = re.compile(r"^(?P<site>.*)/[^/]+\.dist-info/RECORD$")
_COMPILED = re.compile(r"\.pyc$|/opt/imagegen/")
"""Byte code repeats the words of its source; the rules themselves are words of the checks."""


@dataclass(frozen=True)
class FileSecret:
    """The kind and the place of a secret: layer 1 is the lowest."""

    kind: str
    layer: int
    path: str

    def __str__(self) -> str:
        return f"{self.kind} in layer {self.layer}: {self.path}"


@dataclass(frozen=True)
class ImageSecrets:
    """All secrets of an image: those in files, and in words those in settings and history."""

    files: tuple[FileSecret, ...] = ()
    settings: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """List the private keys: `layer N: path`."""
        return tuple(f"layer {o.layer}: {o.path}" for o in self.files if o.kind == _PRIVATE_KEY)

    @property
    def credentials(self) -> tuple[str, ...]:
        """List all else that is in files."""
        return tuple(str(one) for one in self.files if one.kind != _PRIVATE_KEY)

    def __iter__(self) -> Iterator[str]:
        """List all secrets in words."""
        yield from (str(one) for one in self.files)
        yield from self.settings


def secrets_of(engine: Engine, ref: str) -> ImageSecrets:
    """Look into every layer of an image, its settings and its history."""
    found: list[FileSecret] = []
    owned: set[str] = set()
    for number, (_, layer) in enumerate(layers(engine, ref), start=1):
        files, listed = scan_layer(layer, owned)
        found += [FileSecret(kind, number, path) for path, kind in files]
        owned |= listed
    left = tuple(one for one in found if not _is_owned(one.path, owned))
    commands = (command for command, _ in local_images.history(engine, ref))
    return ImageSecrets(left, tuple(in_settings(local_images.inspect(engine, ref), commands)))


def scan_layer(layer: tarfile.TarFile, owned: set[str]) -> tuple[list[tuple[str, str]], set[str]]:
    """List the secrets of a layer, each with its kind, and the files of its package lists.

    `owned` are files of the package lists below; their content is not read.
    """
    files = [member for member in layer if member.isreg() and member.size]
    listed: set[str] = set()
    for member in files:
        path = _path(member)
        content = layer.extractfile(member) if _is_list(path) else None
        if content is not None:
            listed.update(_listed(path, content.read()))
    found: list[tuple[str, str]] = []
    for member in files:
        path = _path(member)
        if not _is_owned(path, owned) and not _is_owned(path, listed):
            kind = _kind(layer, member, path)
            found += [(path, kind)] if kind else []
    return found, listed


def _kind(layer: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> str:
    expose_validate()
    from validate.probes.secret_rules import LARGEST_BYTES, kind_of_file, private_key_at_head

    content = None if _COMPILED.search(path) else layer.extractfile(member)
    if content is None:
        return ""
    if member.size <= LARGEST_BYTES:
        return kind_of_file(path, content.read())
    return private_key_at_head(content.read(_HEAD_BYTES))


def in_settings(described: ImageAnswer, history: Iterable[str]) -> Iterator[str]:
    """Name the secrets in what an image sets, and in the instructions that made it."""
    expose_validate()
    from validate.probes.secret_rules import kind_of_variable, kinds_in_command

    config = described.get("Config") or {}
    for text in config.get("Env") or ():
        name, _, value = text.partition("=")
        if kind_of_variable(name, value):
            yield f"{kind_of_variable(name, value)} in ENV {name}"
    for name, value in sorted((config.get("Labels") or {}).items()):
        if kind_of_variable(name, value):
            yield f"{kind_of_variable(name, value)} in label {name}"
    for place, words in (("ENTRYPOINT", config.get("Entrypoint")), ("CMD", config.get("Cmd"))):
        for kind in kinds_in_command(" ".join(words or ())):
            yield f"{kind}, in {place}"
    # A build argument is in every later instruction: the first one is enough.
    first: dict[str, int] = {}
    for number, command in enumerate(history, start=1):
        for kind in kinds_in_command(command):
            first.setdefault(kind, number)
    yield from (f"{kind}, in instruction {at} of the history" for kind, at in first.items())


def _path(member: tarfile.TarInfo) -> str:
    return "/" + member.name.removeprefix("./")


def _is_owned(path: str, owned: set[str]) -> bool:
    return path in owned and not path.startswith("/etc/")


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
