"""Find what this machine has, and install and start programs on it."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from imagegen.engine.client import Engine, EngineFacts, connect, facts
from imagegen.engine.endpoint import BY_SYSTEM, endpoints
from imagegen.engine.host import process
from imagegen.engine.images import bases
from imagegen.engine.machine import qemu
from imagegen.errors import EngineError, ImagegenError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

DAEMON_LOG = "/var/log/imagegen-dockerd.log"
START_SECONDS = 60

_DAEMON_PID = Path("/var/run/docker.pid")
_APPARMOR = Path("/sys/module/apparmor/parameters/enabled")


@dataclass(frozen=True)
class Host:
    """Hold what decides how programs are installed and started on this machine.

    `soft_roce_lacks` are the missing packages that `validate --soft-roce` needs.
    """

    name: str
    root: bool
    debian_family: bool
    systemd: bool
    apparmor: bool
    dockerd: bool
    mmdebstrap: bool
    nvidia_gpu: bool
    soft_roce_lacks: tuple[str, ...] = ()


@dataclass(frozen=True)
class HostFacts:
    """Hold all facts that `doctor` checks.

    `engine` is None where none answers; `no_engine` says why. `engine_is_ours` says that the user
    named none and none runs, so that one may be set up. `free_bytes` is None where the engine's
    disk is not visible from this process. `out_of_reach` says why the registry of `image` does not
    answer; it is empty where it does.
    """

    host: Host
    python: tuple[int, int, int]
    engine: EngineFacts | None
    no_engine: ImagegenError | None
    engine_is_ours: bool
    free_bytes: int | None
    image: str
    out_of_reach: str


def here() -> Host:
    """Read the facts of this machine. Sources: os-release(5), sd_booted(3)."""
    try:
        release: Mapping[str, str] = platform.freedesktop_os_release()
    except OSError:
        release = {}
    family = {release.get("ID", ""), *release.get("ID_LIKE", "").split()}
    return Host(
        name=release.get("PRETTY_NAME", platform.system()),
        root=os.geteuid() == 0,
        debian_family="debian" in family and shutil.which("apt-get") is not None,
        systemd=Path("/run/systemd/system").is_dir(),
        apparmor=_APPARMOR.is_file() and _APPARMOR.read_text().startswith("Y"),
        dockerd=shutil.which("dockerd") is not None,
        mmdebstrap=shutil.which("mmdebstrap") is not None,
        nvidia_gpu=Path("/proc/driver/nvidia").is_dir(),
        soft_roce_lacks=tuple(qemu.missing_programs()),
    )


def host_facts(image: str) -> HostFacts:
    """Gather all facts; `image` is the base image whose registry is tried."""
    engine, engine_facts, failure = _ask_engine()
    return HostFacts(
        host=here(),
        python=sys.version_info[:3],
        engine=engine_facts,
        no_engine=failure,
        engine_is_ours=engine is None and _none_named() and not daemon_runs(),
        free_bytes=_free_bytes(engine_facts.root_dir) if engine_facts else None,
        image=image,
        out_of_reach=bases.why_out_of_reach(engine, image) if engine else "no engine to ask",
    )


def daemon_runs() -> bool:
    """Return whether the system's dockerd runs, even if it does not answer."""
    try:
        return Path("/proc", _DAEMON_PID.read_text().strip(), "comm").is_file()
    except OSError:
        return False


def perform(argv: Sequence[str], on_line: Callable[[str], None]) -> None:
    """Run one command of a set-up; raises EngineError with its last lines when it fails."""
    try:
        ended = process.run(argv, on_line, {"DEBIAN_FRONTEND": "noninteractive"})
    except OSError as error:
        text = f"`{argv[0]}` cannot be run"
        raise EngineError.of(text, evidence=[str(error)]) from error
    if ended.code != 0:
        text = f"`{' '.join(argv)}` failed (exit code {ended.code})"
        raise EngineError.of(text, evidence=ended.tail)


def start_daemon(argv: Sequence[str]) -> None:
    """Start dockerd so that it outlives this program, with its log at DAEMON_LOG.

    It does nothing where the package's own script has already started one.
    """
    if not daemon_runs():
        process.detach(argv, DAEMON_LOG)


def await_engine() -> Engine:
    """Wait for the engine to answer; raises EngineError after START_SECONDS."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            return connect()
        except EngineError as error:
            if time.monotonic() > deadline:
                text = f"the engine was started and does not answer after {START_SECONDS} s"
                hint = f"see {DAEMON_LOG}, or `journalctl -u docker` where systemd started it"
                raise EngineError.of(text, evidence=_log_tail(), hint=hint) from error
        time.sleep(0.5)


def _ask_engine() -> tuple[Engine | None, EngineFacts | None, ImagegenError | None]:
    try:
        engine = connect()
        return engine, facts(engine), None
    except EngineError as error:
        return None, None, error


def _none_named() -> bool:
    try:
        return endpoints(os.environ)[0].named_by == BY_SYSTEM
    except EngineError:
        return False


def _free_bytes(root_dir: str) -> int | None:
    """Return the free bytes at the engine's root; None where that is on another machine."""
    try:
        return shutil.disk_usage(root_dir).free
    except OSError:
        return None


def _log_tail() -> list[str]:
    try:
        return Path(DAEMON_LOG).read_text(errors="replace").splitlines()[-8:]
    except OSError:
        return []
