"""Run an engine for tests that kill it: dockerd with its own folders, socket and bridge.

It shares only the kernel with the engine of this machine, and its containers reach no network. It
needs root, as the tests here do.
"""

from __future__ import annotations

import io
import secrets
import signal
import subprocess
import tarfile
import time
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from imagegen.engine.client import Engine, connect
from imagegen.engine.containers.containers import Container
from imagegen.engine.images import local_images
from imagegen.errors import EngineError
from imagegen.model.labels import LABEL_HOW

if TYPE_CHECKING:
    from collections.abc import Iterator

    from debian_root import DebianRoot

SECONDS = 60
DIES_WITH_THE_TEST = ("setpriv", "--pdeathsig=TERM")
"""Words before a command: it ends when the test run is killed."""

_LIB = "lib/x86_64-linux-gnu"
SHELL = {
    "bin/bash": "bin/bash",
    "bin/sleep": "bin/sleep",
    "lib64/ld-linux-x86-64.so.2": f"{_LIB}/ld-linux-x86-64.so.2",
    f"{_LIB}/libc.so.6": f"{_LIB}/libc.so.6",
    f"{_LIB}/libtinfo.so.6": f"{_LIB}/libtinfo.so.6.4",
}
"""What a RUN step of a test needs, and which file of Debian 12 that is."""


@dataclass
class OwnEngine:
    """Hold an engine that runs until it is killed; `start` starts it again on the same data.

    `root` has the dockerd to use, if it is not this machine's.
    """

    folder: Path
    bridge: str
    root: DebianRoot | None = None
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def address(self) -> str:
        return f"unix://{self.folder}/docker.sock"

    def start(self) -> None:
        (self.folder / "pid").unlink(missing_ok=True)
        self._bury_containerd()
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *DIES_WITH_THE_TEST,
                    *(self.root.entering(self.folder) if self.root else ()),
                    "dockerd",
                    f"--data-root={self.folder}/data",
                    f"--exec-root={self.folder}/exec",
                    f"--pidfile={self.folder}/pid",
                    f"--host={self.address}",
                    f"--bridge={self.bridge}",
                    "--iptables=false",
                    "--ip-masq=false",
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        with closing(self.connected().api):
            pass

    def _bury_containerd(self) -> None:
        """Wait until containerd is dead and remove its pid file.

        The kernel kills it with its dockerd. If no process reaps it, its number stays in use, and a
        new dockerd would wait for it in vain.
        """
        file = self.folder / "exec/containerd/containerd.pid"
        if not file.exists():
            return
        stat, deadline = Path("/proc", file.read_text().strip(), "stat"), time.monotonic() + SECONDS
        while stat.exists() and ") Z " not in stat.read_text():
            assert time.monotonic() < deadline, "containerd outlives its dockerd"
            time.sleep(0.05)
        file.unlink()

    def connected(self) -> Engine:
        """Return the engine as soon as it answers."""
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                return connect({"DOCKER_HOST": self.address})
            except EngineError:
                said = (self.folder / "log").read_text()[-2000:]
                assert self.process is not None, "not started"
                assert self.process.poll() is None, said
                assert time.monotonic() < deadline, said
                time.sleep(0.1)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        assert self.process is not None, "not started"
        self.process.send_signal(how)
        self.process.wait(SECONDS)


@contextmanager
def own_engine(folder: Path, origin: Engine, base: str) -> Iterator[OwnEngine]:
    """Run an engine with a base of a few megabytes, made from another engine's Debian 12 base."""
    with bridged(folder) as made:
        _bring_base(origin, made, base)
        yield made


@contextmanager
def bridged(folder: Path, root: DebianRoot | None = None) -> Iterator[OwnEngine]:
    """Run an engine with a bridge of its own and no image."""
    bridge = f"ig-{secrets.token_hex(4)}"
    _ip("link", "add", "name", bridge, "type", "bridge")
    try:
        _ip("addr", "add", f"10.213.{secrets.randbelow(250)}.1/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        made = OwnEngine(folder, bridge, root)
        try:
            made.start()
            yield made
        finally:
            made.stop()
    finally:
        _unmount_below(folder)
        _ip("link", "del", bridge)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


def _unmount_below(folder: Path) -> None:
    """Unmount what the killed daemons had mounted, because no other process does it."""
    points = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    for point in reversed([one for one in points if one.startswith(f"{folder}/")]):
        subprocess.run(["umount", "--lazy", point], check=True)


def _bring_base(origin: Engine, target: OwnEngine, base: str) -> None:
    created = origin.api.create_container(base, ["none"])
    try:
        packed = _packed(Container(origin, created["Id"], base))
    finally:
        origin.api.remove_container(created["Id"])
    with closing(target.connected().api) as api:
        repository, tag = local_images.split_reference(base)
        changes = [f"LABEL {LABEL_HOW}=bootstrap"]
        api.import_image_from_data(packed, repository=repository, tag=tag, changes=changes)


def _packed(container: Container) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path, source in SHELL.items():
            data, info = container.read_file(f"/{source}"), tarfile.TarInfo(path)
            info.size, info.mode = len(data), 0o755
            tar.addfile(info, io.BytesIO(data))
    return packed.getvalue()
