"""Unpack small files that are compressed, archived or in base64."""

import base64
import binascii
import io
import re
import zipfile
import zlib
from typing import Iterator

MOST_BYTES = 1 << 20
"""The most bytes that are unpacked from one file."""

LEAST_BYTES = 40
"""Shorter texts are words, not something in base64."""

DEEPEST = 3
"""Packed content may be packed again, so often."""

IN_BASE64 = re.compile(rb"\A\s*[A-Za-z0-9+/_\r\n-]+={0,2}\s*\Z")
PEM_IN_BASE64 = re.compile(rb"LS0tLS1CRUdJTi[A-Za-z0-9+/\r\n]{32,}")
"""Base64 of `-----BEGIN`, as kubeconfig files and secrets have keys."""


def unpacked(data: bytes, deepest: int = DEEPEST) -> Iterator[bytes]:
    """Yield some bytes themselves, then what is packed in them."""
    yield data
    for inner in _inner(data) if deepest else ():
        yield from unpacked(inner, deepest - 1)


def _inner(data: bytes) -> Iterator[bytes]:
    if data.startswith(b"\x1f\x8b"):
        yield _inflated(data)
    elif data.startswith(b"BZh"):
        yield _with("bz2", "BZ2Decompressor", data)
    elif data.startswith(b"\xfd7zXZ\0"):
        yield _with("lzma", "LZMADecompressor", data)
    elif data.startswith(b"PK\x03\x04"):
        yield from _of_zip(data)
    elif len(data) >= LEAST_BYTES and IN_BASE64.match(data):
        yield _decoded(data)
    else:
        for match in PEM_IN_BASE64.finditer(data):
            yield _decoded(match.group())


def _inflated(data: bytes) -> bytes:
    try:
        return zlib.decompressobj(31).decompress(data, MOST_BYTES)
    except zlib.error:
        return b""


def _with(module: str, decompressor: str, data: bytes) -> bytes:
    """Decompress with a module that a Python may lack."""
    try:
        made = getattr(__import__(module), decompressor)()
        return bytes(made.decompress(data, MOST_BYTES))
    except (ImportError, OSError, EOFError, ValueError, RuntimeError):
        return b""
    except Exception as error:  # lzma.LZMAError, which exists only with the module
        if type(error).__name__ != "LZMAError":
            raise
        return b""


def _of_zip(data: bytes) -> Iterator[bytes]:
    left = MOST_BYTES
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for one in archive.infolist():
                left -= one.file_size
                if left < 0:
                    return
                yield archive.read(one)
    except (zipfile.BadZipFile, OSError, RuntimeError, NotImplementedError, ValueError, zlib.error):
        return


def _decoded(data: bytes) -> bytes:
    """Decode base64, also of the kind for URLs, also where it is cut off."""
    packed = b"".join(data.split()).replace(b"-", b"+").replace(b"_", b"/").rstrip(b"=")
    try:
        return base64.b64decode(packed[: len(packed) // 4 * 4])
    except (binascii.Error, ValueError):
        return b""
