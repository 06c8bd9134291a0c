"""Pack a build context: equal files give equal bytes, and large files are never in memory."""

from __future__ import annotations

import tarfile
import zlib
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from imagegen.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from imagegen.model.recipe import ContextFile

CHUNK_BYTES = 1 << 20
_FAST, _STORED = 1, 0
_GZIP = 31
"""zlib's `wbits` for a gzip stream. Its header has no time and no name."""


@dataclass(frozen=True)
class HostFile:
    """Name a file of this host and its path in a build context; it is too large for memory."""

    path: str
    source: Path
    sha256: str


@dataclass(frozen=True)
class Context:
    """Hold a build context, which gives its chunks for `/build` each time it is iterated.

    It is a gzipped GNU tar with fixed times and owners: the engine takes a plain tar that starts
    with a PAX header for a Dockerfile. It has entries for folders too, because the engine would
    choose their modes otherwise. Vendors' parts are compressed already, so a context with any of
    them is stored without compression.
    """

    dockerfile: str
    files: tuple[ContextFile, ...]
    host_files: tuple[HostFile, ...] = ()

    def __iter__(self) -> Iterator[bytes]:
        """Pack the chunks; raises EngineError where a host file is missing or changes its size."""
        packer = zlib.compressobj(_STORED if self.host_files else _FAST, wbits=_GZIP)
        for chunk in self._tar():
            if packed := packer.compress(chunk):
                yield packed
        yield packer.flush()

    def _tar(self) -> Iterator[bytes]:
        yield from _file("Dockerfile", self.dockerfile.encode(), 0o644)
        paths = [*(file.path for file in self.files), *(file.path for file in self.host_files)]
        for folder in _folders(paths):
            yield _header(folder, tarfile.DIRTYPE, 0, 0o755)
        for file in sorted(self.files, key=lambda file: file.path):
            yield from _file(file.path, file.data, file.mode)
        for large in sorted(self.host_files, key=lambda file: file.path):
            yield from _host_file(large)
        yield bytes(2 * tarfile.BLOCKSIZE)


def pack_context(
    dockerfile: str, files: Iterable[ContextFile], host_files: Iterable[HostFile] = ()
) -> Context:
    """Make a build context of a Dockerfile, files in memory, and files to read while packing."""
    return Context(dockerfile, tuple(files), tuple(host_files))


def _folders(paths: Iterable[str]) -> list[str]:
    parents = {parent for path in paths for parent in PurePosixPath(path).parents}
    return sorted(str(parent) for parent in parents if str(parent) != ".")


def _file(path: str, data: bytes, mode: int) -> Iterator[bytes]:
    yield _header(path, tarfile.REGTYPE, len(data), mode)
    yield data + _padding(len(data))


def _host_file(file: HostFile) -> Iterator[bytes]:
    try:
        with file.source.open("rb") as source:
            size = left = file.source.stat().st_size
            yield _header(file.path, tarfile.REGTYPE, size, 0o644)
            while left and (chunk := source.read(min(CHUNK_BYTES, left))):
                left -= len(chunk)
                yield chunk
    except OSError as error:
        text = f"`{file.source}` cannot be read"
        raise EngineError.of(text, evidence=[error.strerror or str(error)]) from error
    if left:
        text = f"`{file.source}` became shorter while it was read"
        raise EngineError.of(text, hint="run it again when nothing writes to that file")
    yield _padding(size)


def _padding(size: int) -> bytes:
    return bytes(-size % tarfile.BLOCKSIZE)


def _header(path: str, kind: bytes, size: int, mode: int) -> bytes:
    info = tarfile.TarInfo(path)
    info.type, info.size, info.mode, info.mtime = kind, size, mode, 0
    return info.tobuf(tarfile.GNU_FORMAT)
