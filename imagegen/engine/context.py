"""Pack a build context: the same files give the same bytes."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from imagegen.model import ContextFile

_FAST = 1


def pack_context(dockerfile: str, files: Sequence[ContextFile]) -> bytes:
    """The context as `/build` takes it: a gzipped GNU tar with fixed times and owners.

    A plain tar that starts with a PAX header is taken for a Dockerfile by the engine, hence GNU
    and gzip. Folders are written too: the engine would choose their modes itself.
    """
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.GNU_FORMAT) as tar:
        _add(tar, "Dockerfile", dockerfile.encode(), 0o644)
        for folder in _folders(files):
            tar.addfile(_entry(folder, tarfile.DIRTYPE, 0, 0o755))
        for file in sorted(files, key=lambda file: file.path):
            _add(tar, file.path, file.data, file.mode)
    return gzip.compress(plain.getvalue(), compresslevel=_FAST, mtime=0)


def _folders(files: Sequence[ContextFile]) -> list[str]:
    parents = {parent for file in files for parent in PurePosixPath(file.path).parents}
    return sorted(str(parent) for parent in parents if str(parent) != ".")


def _add(tar: tarfile.TarFile, path: str, data: bytes, mode: int) -> None:
    tar.addfile(_entry(path, tarfile.REGTYPE, len(data), mode), io.BytesIO(data))


def _entry(path: str, kind: bytes, size: int, mode: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(path)
    info.type, info.size, info.mode, info.mtime = kind, size, mode, 0
    return info
