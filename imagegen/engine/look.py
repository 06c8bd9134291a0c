"""What images the engine has, asked without the SDK where that can be done.

To load the SDK takes longer than to answer a request, and the HTTP client of the standard library,
which brings TLS and mail headers, a tenth of it; two short calls over a plain socket say it too.
"""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from imagegen.engine.images.names import LocalImage, inspected, listed
from imagegen.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SECONDS = 10
PLAIN_PORT = 2375
SYSTEM_SOCKET = "/var/run/docker.sock"


def labels_of(ref: str, environ: Mapping[str, str] | None = None) -> Mapping[str, str]:
    """The labels of an image of that reference on the engine that `client.connect` would find.

    None where it has no such image, and where no engine answers.
    """
    where = dict(os.environ if environ is None else environ)
    addresses = plain_addresses(where)
    if addresses is None:
        return _asked_by_sdk(ref, where)
    for url in addresses:
        try:
            return _asked(url, ref)
        except (FileNotFoundError, ConnectionRefusedError, PermissionError):
            continue
        except (OSError, ValueError):
            return _asked_by_sdk(ref, where)
    return {}


def stock(
    label: str, refs: Iterable[str], environ: Mapping[str, str] | None = None
) -> tuple[tuple[LocalImage, ...], Mapping[str, LocalImage]] | None:
    """All images with a label, and those that the references mean, where there are such.

    None where the SDK has to be asked: no engine answers a plain socket, or not in these words.
    """
    addresses = plain_addresses(dict(os.environ if environ is None else environ)) or ()
    for url in addresses:
        try:
            version = _version(url)
            wanted = quote(json.dumps({"label": [label]}))
            rows = _json(url, f"/v{version}/images/json?filters={wanted}")
            found = {ref: _json(url, _path(version, ref)) for ref in refs}
            images = {ref: inspected(row) for ref, row in found.items() if row is not None}
            return tuple(map(listed, rows)), images
        except (FileNotFoundError, ConnectionRefusedError, PermissionError):
            continue
        except (OSError, ValueError, TypeError, KeyError):
            return None
    return None


def plain_addresses(environ: Mapping[str, str]) -> tuple[str, ...] | None:
    """Addresses to ask without the SDK, in the order of `client.endpoints`.

    None where TLS, SSH or a context is asked for: those are the SDK's.
    """
    host = environ.get("DOCKER_HOST", "")
    if host:
        tls = environ.get("DOCKER_TLS_VERIFY") or environ.get("DOCKER_CERT_PATH")
        return None if tls or not host.startswith(("unix://", "tcp://")) else (host,)
    if _context(environ) != "default":
        return None
    runtime_dir = environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    sockets = (SYSTEM_SOCKET, f"{runtime_dir}/docker.sock")
    return tuple(f"unix://{path}" for path in sockets if Path(path).exists())


def _context(environ: Mapping[str, str]) -> str:
    """The context in use; empty where the SDK is to say what is wrong with it."""
    named = environ.get("DOCKER_CONTEXT")
    if named:
        return named
    folder = Path(environ.get("DOCKER_CONFIG") or Path.home() / ".docker")
    try:
        found = json.loads((folder / "config.json").read_bytes())
        return str(found.get("currentContext") or "default")
    except FileNotFoundError:
        return "default"
    except (OSError, ValueError, AttributeError):
        return ""


def _asked(url: str, ref: str) -> Mapping[str, str]:
    """Raises OSError or ValueError for any answer but an image and none."""
    described = _json(url, _path(_version(url), ref)) or {}
    if not isinstance(described, dict):
        raise ValueError(described)
    return (described.get("Config") or {}).get("Labels") or {}


def _version(url: str) -> str:
    """The newest version of the API that the engine speaks."""
    _, head, _ = _get(url, "/_ping")
    named = [line.split(b":", 1)[1] for line in head if line.lower().startswith(b"api-version:")]
    return named[0].strip().decode("ascii") if named else ""


def _path(version: str, ref: str) -> str:
    return f"/v{version}/images/{quote(ref, safe='/:@')}/json"


def _json(url: str, path: str) -> Any:
    """What the engine says; None where it has no such thing. Raises OSError or ValueError."""
    status, _, body = _get(url, path)
    if status not in (200, 404):
        raise ValueError(status)
    said = json.loads(body)
    return said if status == 200 else None


def _get(url: str, path: str) -> tuple[int, list[bytes], bytes]:
    """Status, header lines and body. In HTTP/1.0 an answer is all that comes until the end."""
    with _connected(url) as connection, connection.makefile("rb") as answer:
        connection.sendall(f"GET {path} HTTP/1.0\r\nHost: docker\r\n\r\n".encode())
        head, _, body = answer.read().partition(b"\r\n\r\n")
    protocol, status, *_ = [*head.split(b" ", 2), b"", b""]
    if not protocol.startswith(b"HTTP/1."):
        raise ValueError(f"{url} does not speak HTTP")
    return int(status), head.split(b"\r\n"), body


def _connected(url: str) -> socket.socket:
    parts = urlsplit(url)
    if parts.scheme != "unix":
        return socket.create_connection((parts.hostname, parts.port or PLAIN_PORT), SECONDS)
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(SECONDS)
    try:
        connection.connect(url.removeprefix("unix://"))
    except OSError:
        connection.close()
        raise
    return connection


def _asked_by_sdk(ref: str, environ: Mapping[str, str]) -> Mapping[str, str]:
    from imagegen.engine.client import connect
    from imagegen.engine.images import store as images

    try:
        found = images.find(connect(environ), ref)
    except EngineError:
        return {}
    return found.labels if found else {}
