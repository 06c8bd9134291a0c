"""Send one GET to an engine over a plain socket, with limits for time and size.

Loading the HTTP client of the standard library, with TLS and mail headers, takes a tenth of what
loading the SDK takes, and neither limits the time of a whole answer.
"""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

PLAIN_PORT = 2375
MOST_BYTES = 64_000_000
"""The most bytes of an answer: the list of 10,000 images has ten million."""

_CHUNK_BYTES = 65536


def get(url: str, path: str, seconds: float) -> tuple[int, list[bytes], bytes]:
    """Return status, header lines and body; in HTTP/1.0 an answer ends with the connection.

    Raises OSError, TimeoutError where the whole answer does not come in time, and ValueError for an
    address or an answer that is none.
    """
    deadline = time.monotonic() + seconds
    with _connected(url, seconds) as connection:
        connection.sendall(f"GET {path} HTTP/1.0\r\nHost: docker\r\n\r\n".encode())
        head, _, body = b"".join(_chunks(connection, deadline)).partition(b"\r\n\r\n")
    protocol, status, *_ = [*head.split(b" ", 2), b"", b""]
    if not protocol.startswith(b"HTTP/1."):
        raise ValueError("it does not speak HTTP")
    return int(status), head.split(b"\r\n"), body


def _chunks(connection: socket.socket, deadline: float) -> Iterator[bytes]:
    size = 0
    while (left := deadline - time.monotonic()) > 0:
        connection.settimeout(left)
        chunk = connection.recv(_CHUNK_BYTES)
        if not chunk:
            return
        size += len(chunk)
        if size > MOST_BYTES:
            raise ValueError(f"its answer has more than {MOST_BYTES} bytes")
        yield chunk
    raise TimeoutError("timed out")


def _connected(url: str, seconds: float) -> socket.socket:
    parts = urlsplit(url)
    if parts.scheme != "unix":
        return socket.create_connection((parts.hostname, parts.port or PLAIN_PORT), seconds)
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(seconds)
    try:
        connection.connect(url.removeprefix("unix://"))
    except OSError:
        connection.close()
        raise
    return connection
