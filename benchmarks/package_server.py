"""One server for what builds download: wheels from a folder, and a proxy that keeps what apt asks.

Everyone's downloads come from here, at the speed of this machine: nobody waits for a network, and
nobody has a package that the others have not.
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
    """`sent` counts the bytes of all answers."""

    daemon_threads = True
    # Several builds open a connection for each package at once: of five that wait, the sixth is
    # dropped, and apt tries again after its time-out.
    request_queue_size = 512

    def __init__(self, address: str, wheels: Path, kept: Path) -> None:
        super().__init__((address, 0), _Handler)
        self.address, self.wheels, self.kept, self.sent = address, wheels, kept, 0
        self._lock = threading.Lock()
        kept.mkdir(parents=True, exist_ok=True)

    @property
    def url(self) -> str:
        return f"http://{self.address}:{self.server_port}"

    @property
    def index(self) -> str:
        """For pip."""
        return f"{self.url}/simple/"

    @property
    def environ(self) -> dict[str, str]:
        """Has imagegen use this server, and keeps this machine's own settings out of its builds."""
        return {"PIP_INDEX_URL": self.index, "PIP_TRUSTED_HOST": self.address, **self.proxy}

    @property
    def proxy(self) -> dict[str, str]:
        """For apt; pip goes to the index directly."""
        return {"http_proxy": self.url, "no_proxy": self.address}

    def count(self, size: int) -> None:
        with self._lock:
            self.sent += size


@contextmanager
def package_server(address: str, wheels: Path, kept: Path) -> Iterator[PackageServer]:
    """Serve on an address of this machine, at a port that is free."""
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
        """The file of a URL, fetched when it is asked for first; none where there is none."""
        path = self.server.kept / hashlib.sha256(url.encode()).hexdigest()
        if not path.exists():
            part = path.with_suffix(f".{threading.get_ident()}")
            with suppress(OSError):
                with urllib.request.urlopen(url) as answer, part.open("wb") as file:
                    shutil.copyfileobj(answer, file)
                part.replace(path)
        return path

    def _page(self, project: str) -> None:
        """The page of a project as PEP 503 wants it."""
        names = [
            path.name
            for path in sorted(self.server.wheels.iterdir())
            if re.sub(r"[-_.]+", "-", path.name.split("-")[0]).lower() == project
        ]
        body = "".join(f'<a href="/files/{name}">{name}</a>\n' for name in names).encode()
        self._head(200 if names else 404, len(body), "text/html")
        self.wfile.write(body)

    def do_HEAD(self) -> None:
        """Of a wheel: its size, and that parts of it can be had (uv reads the metadata alone)."""
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
        if start == end:  # sendfile refuses to send nothing
            return
        with path.open("rb") as file:
            self.connection.sendfile(file, start, end - start)
        self.server.count(end - start)

    def _part(self, size: int) -> tuple[int, int]:
        """What a `Range` asks for: `bytes=A-B`, `bytes=A-` or the last `bytes=-N`."""
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
        """Nothing: builds have logs of their own."""
