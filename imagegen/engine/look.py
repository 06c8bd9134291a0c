"""The labels of an image on the engine, asked without the SDK where that can be done.

To load the SDK takes longer than a whole request; over a plain socket two short calls say it too.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from imagegen.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Mapping

SECONDS = 10
SYSTEM_SOCKET = "/var/run/docker.sock"


class _Unix(http.client.HTTPConnection):
    """HTTP over a socket of this machine."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


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
        except (OSError, http.client.HTTPException, ValueError):
            return _asked_by_sdk(ref, where)
    return {}


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
    """Raises OSError, HTTPException or ValueError for any answer but an image and none."""
    parts = urlsplit(url)
    connection: http.client.HTTPConnection = (
        _Unix(url.removeprefix("unix://"))
        if parts.scheme == "unix"
        else http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=SECONDS)
    )
    with closing(connection):
        connection.request("GET", "/_ping")
        ping = connection.getresponse()
        ping.read()
        version = ping.headers["Api-Version"] or ""
        connection.request("GET", f"/v{version}/images/{quote(ref, safe='/:@')}/json")
        answer = connection.getresponse()
        described = json.loads(answer.read())
        if answer.status not in (200, 404) or not isinstance(described, dict):
            raise ValueError(answer.status)
        return (described.get("Config") or {}).get("Labels") or {}


def _asked_by_sdk(ref: str, environ: Mapping[str, str]) -> Mapping[str, str]:
    from imagegen.engine import images
    from imagegen.engine.client import connect

    try:
        found = images.find(connect(environ), ref)
    except EngineError:
        return {}
    return found.labels if found else {}
