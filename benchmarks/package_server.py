"""Serve what builds download: wheels from a folder, and apt packages by a proxy that keeps them.

All contenders download from here, at the speed of this machine: nobody waits for a network, and
nobody has a package that the others lack.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import threading
import urllib.request
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class PackageServer(ThreadingHTTPServer):
    """Serve wheels and packages; `sent` counts the bytes of all answers."""

    daemon_threads = True
    # Several builds open a connection for each package at once. With the default of 5 the kernel
    # drops further ones, and apt tries again only after its time-out.
    request_queue_size = 512

    def __init__(self, address: str, wheels: Path, kept: Path) -> None:
        super().__init__((address, 0), _Handler)
        self.address, self.wheels, self.kept, self.sent = address, wheels, kept, 0
        self._lock = threading.Lock()
        kept.mkdir(parents=True, exist_ok=True)

    @property
    def url(self) -> str:
        """Return the address of the server."""
        return f"http://{self.address}:{self.server_port}"

    @property
    def index(self) -> str:
        """Return the address of the index for pip."""
        return f"{self.url}/simple/"

    @property
    def environ(self) -> dict[str, str]:
        """Return variables that make imagegen's builds use this server.

        They replace this machine's own settings.
        """
        return {"PIP_INDEX_URL": self.index, "PIP_TRUSTED_HOST": self.address, **self.proxy}

    @property
    def proxy(self) -> dict[str, str]:
        """Return variables that make apt use this server as proxy; pip uses the index directly."""
        return {"http_proxy": self.url, "no_proxy": self.address}

    def count(self, size: int) -> None:
        """Add the bytes of an answer to `sent`."""
        with self._lock:
            self.sent += size


@contextmanager
def package_server(address: str, wheels: Path, kept: Path) -> Iterator[PackageServer]:
    """Serve on an address of this machine while the block lasts, at a free port."""
    server = PackageServer(address, wheels, kept)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: PackageServer

    def do_GET(self) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):
            if self.path.startswith("http://"):
                self._send(self._fetched(self.path))
            elif self.path.startswith("/simple/"):
                self._page(self.path.split("/")[2])
            else:
                self._send(self.server.wheels / Path(self.path).name)

    def _fetched(self, url: str) -> Path:
        """Return the path of a URL's file, fetched at the first request.

        If that fails, the path does not exist.
        """
        path = self.server.kept / hashlib.sha256(url.encode()).hexdigest()
        if not path.exists():
            part = path.with_suffix(f".{threading.get_ident()}")
            with suppress(OSError):
                with urllib.request.urlopen(url) as answer, part.open("wb") as file:
                    shutil.copyfileobj(answer, file)
                part.replace(path)
        return path

    def _page(self, project: str) -> None:
        """Send the page of a project in the form of PEP 503."""
        names = [
            path.name
            for path in sorted(self.server.wheels.iterdir())
            if re.sub(r"[-_.]+", "-", path.name.split("-")[0]).lower() == project
        ]
        body = "".join(f'<a href="/files/{name}">{name}</a>\n' for name in names).encode()
        self._head(200 if names else 404, len(body), "text/html")
        self.wfile.write(body)

    def do_HEAD(self) -> None:
        """Send the size of a wheel and that parts can be requested: uv reads only the metadata."""
        path = self.server.wheels / Path(self.path).name
        self._head(200, path.stat().st_size) if path.is_file() else self._head(404, 0)

    def _send(self, path: Path) -> None:
        if not path.is_file():
            self._head(404, 0)
            return
        size = path.stat().st_size
        start, end = self._part(size)
        part = f"bytes {start}-{end - 1}/{size}" if end - start < size else ""
        self._head(206 if part else 200, end - start, part=part)
        if start == end:  # sendfile does not accept zero bytes
            return
        with path.open("rb") as file:
            self.connection.sendfile(file, start, end - start)
        self.server.count(end - start)

    def _part(self, size: int) -> tuple[int, int]:
        """Return the start and end that a `Range` asks for: `bytes=A-B`, `bytes=A-` or `bytes=-N`.

        `bytes=-N` asks for the last N bytes. Without a `Range` this is the whole file.
        """
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if asked is None or asked[0] == "bytes=-":
            return 0, size
        if not asked[1]:
            return max(0, size - int(asked[2])), size
        return int(asked[1]), min(size, int(asked[2]) + 1) if asked[2] else size

    def _head(
        self, status: int, size: int, kind: str = "application/octet-stream", part: str = ""
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(size))
        self.send_header("Accept-Ranges", "bytes")
        if part:
            self.send_header("Content-Range", part)
        self.end_headers()
        self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Print nothing: builds have logs of their own."""
