"""A real registry on a loopback port: Debian's `docker-registry`, installed where it is missing."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

BINARY = "docker-registry"
_CONFIG = """\
version: 0.1
log: {{level: error}}
storage: {{filesystem: {{rootdirectory: {root}}}, delete: {{enabled: true}}}}
http: {{addr: "{address}"}}
"""


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`host:port` of a registry that is empty at first and gone with the session."""
    if shutil.which(BINARY) is None:
        _install()
    with serving(tmp_path_factory.mktemp("registry")) as address:
        yield address


def _install() -> None:
    # A policy that keeps the package's own service, on another port, from starting.
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
