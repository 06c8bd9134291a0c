"""Run a real registry on a loopback port: Debian's `docker-registry`, installed if missing."""

from __future__ import annotations

import hashlib
import json
import shutil
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from debian_root import one_process

if TYPE_CHECKING:
    from collections.abc import Iterator

BINARY = "docker-registry"
ACCEPT = "application/vnd.docker.distribution.manifest.v2+json"
_CONFIG = """\
version: 0.1
log: {{level: error}}
storage: {{filesystem: {{rootdirectory: {root}}}, delete: {{enabled: true}}}}
http: {{addr: "{address}"}}
"""
_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield `host:port` of a registry that is empty at first and exists for the session."""
    with one_process("registry"):
        if shutil.which(BINARY) is None:
            _install()
    with serving(tmp_path_factory.mktemp("registry")) as address:
        yield address


def _install() -> None:
    # This policy keeps the service of the package, on another port, from starting.
    policy = Path("/usr/sbin/policy-rc.d")
    ours = not policy.exists()
    if ours:
        policy.write_text("#!/bin/sh\nexit 101\n")
        policy.chmod(0o755)
    try:
        subprocess.run(["apt-get", "update", "-q"], check=True)
        command = ["apt-get", "install", "-y", "-q", "--no-install-recommends", BINARY]
        subprocess.run(command, check=True)
    finally:
        if ours:
            policy.unlink()


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Run a registry that keeps its data in `folder`."""
    address = f"127.0.0.1:{_free_port()}"
    config = folder / "config.yml"
    config.write_text(_CONFIG.format(root=folder / "data", address=address))
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([BINARY, "serve", str(config)], stdout=log, stderr=log)
        try:
            _await(address, process, folder / "log")
            yield address
        finally:
            process.terminate()
            process.wait(10)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _await(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 20
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()
        try:
            with direct.open(f"http://{address}/v2/", timeout=2):
                return
        except OSError:
            time.sleep(0.1)
    pytest.fail(f"the registry does not answer: {log.read_text()}")


def digest_there(reference: str) -> str | None:
    """Return the digest of `host/name:tag`, computed from the bytes that the registry serves."""
    host, _, rest = reference.partition("/")
    name, _, tag = rest.rpartition(":")
    request = urllib.request.Request(
        f"http://{host}/v2/{name}/manifests/{tag}", headers={"Accept": ACCEPT}
    )
    try:
        with _direct.open(request, timeout=10) as answer:
            body = answer.read()
            assert json.loads(body)["schemaVersion"] == 2
            return f"sha256:{hashlib.sha256(body).hexdigest()}"
    except urllib.error.HTTPError as error:
        with error:
            if error.code != 404:
                raise
    return None


@contextmanager
def failing_registry(upstream: str, fatal: bytes, *, dies: bool) -> Iterator[str]:
    """Yield the address of a relay to a registry that answers 500 to a PUT of `fatal`.

    If it `dies`, it closes the connection instead, and answers no more.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        relay = _Relay(listener, upstream, fatal, dies)
        accepting = threading.Thread(target=relay.accept, daemon=True)
        accepting.start()
        yield "{}:{}".format(*listener.getsockname())
        relay.close()
        accepting.join(10)


class _Relay:
    """Carry bytes of HTTP from one side to the other, and look at those of the client."""

    def __init__(self, listener: socket.socket, upstream: str, fatal: bytes, dies: bool) -> None:
        self._listener, self._fatal, self._dies = listener, fatal, dies
        host, _, port = upstream.partition(":")
        self._upstream = (host, int(port))
        self._open: list[socket.socket] = []

    def accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._upstream)
            self._open += [client, server]
            for one, other, looks in ((client, server, True), (server, client, False)):
                threading.Thread(target=self._carry, args=(one, other, looks), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket, looks: bool) -> None:
        try:
            while data := source.recv(1 << 16):
                line = data.partition(b"\r\n")[0]
                if looks and line.startswith(b"PUT ") and self._fatal + b" " in line:
                    self._fail(source)
                    return
                target.sendall(data)
        except OSError:
            pass
        finally:
            _shut(target)

    def _fail(self, client: socket.socket) -> None:
        if self._dies:
            self.close()
            return
        client.sendall(b"HTTP/1.1 500 no\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        _shut(client)

    def close(self) -> None:
        for one in (self._listener, *self._open):
            _shut(one)
            one.close()


def _shut(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
