"""Run an engine for one measurement: dockerd with an empty folder and its own socket and bridge.

It runs beside the engine of the machine, needs root, and leaves nothing behind. Containers reach
this machine over the bridge (`OwnDockerd.gateway`) and nothing else, so builds download only from a
server here, at the same speed for every contender.

If the kernel has control groups of the first version, the engine and all that runs on it are one
group. It then gets the same share of a busy machine for any number of processes that a contender
starts, and its CPU seconds are known.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import measure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SECONDS = 60
BASE = "imagegen/base:debian12"
GROUPS = Path("/sys/fs/cgroup")
SHARES = 6 * 1024
"""CPU shares of the engine with all its containers; a process outside of groups has 1024."""

WHERE = "IMAGEGEN_BENCH_FOLDER"
"""This variable names the folder for engines and their downloads; by default it is below /var/tmp.
"""


def folder_of_benchmarks() -> Path:
    """Return the folder for large files; make it if it is not there."""
    folder = Path(os.environ.get(WHERE, "/var/tmp/imagegen-bench"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@dataclass(frozen=True)
class OwnDockerd:
    """Hold a running engine that has the base image of the cells and no other image."""

    folder: Path
    gateway: str
    group: str

    def timed(self, call: Callable[[], object]) -> tuple[float, float]:
        """Return the wall seconds of a call and the CPU seconds of its processes and the engine."""
        before = self._cpu()
        wall, cpu = measure.timed(call)
        return wall, cpu + self._cpu() - before

    def _cpu(self) -> float:
        usage = GROUPS / "cpuacct" / self.group / "cpuacct.usage"
        return int(usage.read_text()) / 1e9 if usage.exists() else 0.0

    @property
    def environ(self) -> dict[str, str]:
        """Return variables that make docker's programs and imagegen use this engine.

        imagegen gets a state folder of its own.
        """
        return {
            "DOCKER_HOST": f"unix://{self.folder}/docker.sock",
            "IMAGEGEN_STATE": str(self.folder / "state"),
        }

    def docker(self, *arguments: str) -> str:
        """Run the command `docker` on this engine and return what it printed."""
        return measure.output_of(["docker", *arguments], **self.environ).decode()

    def images(self) -> dict[str, str]:
        """Map the references of the engine's images to their ids."""
        form = "{{.Repository}}:{{.Tag}} {{.ID}}"
        listed = self.docker("images", "--no-trunc", "--filter", "dangling=false", "--format", form)
        return dict(line.split() for line in listed.splitlines())

    def disk_bytes(self) -> int:
        """Return how many bytes the engine has on the disk: images, layers, caches."""
        subprocess.run(["sync"], check=True)
        command = ["du", "--one-file-system", "--summarize", "--block-size=1"]
        return int(measure.output_of([*command, self.folder / "data"]).split()[0])


@contextmanager
def own_dockerd() -> Iterator[OwnDockerd]:
    """Start an engine with this machine's base image; remove it at the end of the block."""
    folder = Path(tempfile.mkdtemp(prefix="engine-", dir=folder_of_benchmarks()))
    bridge, network = f"igb-{secrets.token_hex(4)}", f"10.214.{secrets.randbelow(250)}"
    # Without an address of its own a bridge takes the lowest one of its ports. It changes when that
    # container ends, and the other containers then lose their gateway for half a minute.
    address = ":".join(["02", *(secrets.token_hex(1) for _ in range(5))])
    _ip("link", "add", "name", bridge, "address", address, "type", "bridge")
    try:
        _ip("addr", "add", f"{network}.1/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        made = OwnDockerd(folder, f"{network}.1", bridge)
        with _own_group(bridge) as enter, _running(made, bridge, enter):
            _bring_base(made)
            yield made
    finally:
        _ip("link", "del", bridge)
        shutil.rmtree(folder)


@contextmanager
def _own_group(name: str) -> Iterator[list[str]]:
    """Make a control group, and yield the command line that starts a program in it."""
    groups = [GROUPS / one / name for one in ("cpu", "cpuacct") if (GROUPS / one).is_dir()]
    for group in groups:
        group.mkdir()
        if group.parent.name == "cpu":
            (group / "cpu.shares").write_text(str(SHARES))
    enter = "; ".join([f"echo $$ > {group}/cgroup.procs" for group in groups] + ['exec "$@"'])
    try:
        yield ["sh", "-ec", enter, "sh"]
    finally:
        for group in groups:
            for folder, _, _ in os.walk(group, topdown=False):
                Path(folder).rmdir()


@contextmanager
def _running(engine: OwnDockerd, bridge: str, enter: list[str]) -> Iterator[None]:
    folder = engine.folder
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                *enter,
                "dockerd",
                f"--cgroup-parent=/{engine.group}",
                f"--data-root={folder}/data",
                f"--exec-root={folder}/exec",
                f"--pidfile={folder}/pid",
                f"--host={engine.environ['DOCKER_HOST']}",
                f"--bridge={bridge}",
                "--iptables=false",
                "--ip-masq=false",
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        _wait_for(engine)
        yield
    finally:
        process.terminate()
        process.wait(SECONDS)
        _unmount_below(folder)


def _wait_for(engine: OwnDockerd) -> None:
    deadline = time.monotonic() + SECONDS
    environ = {**os.environ, **engine.environ}
    while subprocess.run(["docker", "info"], env=environ, capture_output=True).returncode:
        assert time.monotonic() < deadline, (engine.folder / "log").read_text()[-2000:]
        time.sleep(0.1)


def _bring_base(engine: OwnDockerd) -> None:
    with subprocess.Popen(["docker", "save", BASE], stdout=subprocess.PIPE) as saved:
        environ = {**os.environ, **engine.environ}
        subprocess.run(
            ["docker", "load", "--quiet"],
            stdin=saved.stdout,
            stdout=subprocess.DEVNULL,
            env=environ,
            check=True,
        )
    assert saved.returncode == 0, f"{BASE}: `imagegen doctor --fix --matrix cpu` makes it"


def _unmount_below(folder: Path) -> None:
    points = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    for point in reversed([one for one in points if one.startswith(f"{folder}/")]):
        subprocess.run(["umount", "--lazy", point], check=True)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)
