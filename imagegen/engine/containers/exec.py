"""Run a command in a container with a time limit, which the Engine API does not have."""

from __future__ import annotations

import secrets
import struct
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from imagegen.engine import sdk
from imagegen.engine.builds.lines import Lines
from imagegen.engine.client import CALL_SECONDS, Engine, engine_errors, error_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import docker
    import requests

EXPIRED = 124
"""The exit code of a command that ran out of time, as in coreutils' `timeout`."""

KILLED = 137
"""The exit code of a command that was killed, or whose container died."""

GRACE_SECONDS = 5
_POLL_SECONDS = 0.02
_STDERR = 2
_MARK = "IMAGEGEN_EXEC"

# Every process that the command started has the mark in its environment, even one that left the
# process group, as the daemons of mpirun do. The killer itself has it only as an argument. All
# processes are stopped before any is killed, so that a parent cannot continue, or start more, when
# its child has died.
_KILLER = """for signal in STOP KILL; do
  for process in /proc/[0-9]*; do
    if grep -qa "$1" "$process/environ" 2>/dev/null; then kill -$signal "${process#/proc/}"; fi
  done
done"""


@dataclass(frozen=True)
class ExecResult:
    """Hold how a command ended and what it printed."""

    code: int
    out: str
    err: str
    timed_out: bool = False


@dataclass
class _Watch:
    """Kill a command when its time is up, so that reading its output ends."""

    engine: Engine
    container: str
    mark: str
    ended: threading.Event = field(default_factory=threading.Event)
    expired: bool = False

    def expire(self) -> None:
        """Kill the command's processes; kill the container where that does not end the command."""
        self.expired = True
        with self.engine.fresh() as api:
            # If the container has no shell or does not exist, the next step handles it.
            with suppress(*sdk.transport_errors()):
                killer = api.exec_create(self.container, ["sh", "-c", _KILLER, "sh", self.mark])
                api.exec_start(killer["Id"], detach=True)
            if not self.ended.wait(GRACE_SECONDS):
                with suppress(*sdk.transport_errors()):
                    api.kill(self.container)


def run_exec(
    engine: Engine,
    container: str,
    argv: list[str],
    timeout: float,
    env: dict[str, str],
    on_output: Callable[[str], None] | None,
) -> ExecResult:
    """Run `argv` for at most `timeout` seconds; see Container.exec."""
    token = secrets.token_hex(8)
    watch = _Watch(engine, container, f"{_MARK}={token}")
    timer = threading.Timer(timeout, watch.expire)
    with engine_errors(f"run `{argv[0]}` in the container"), engine.fresh() as api:
        created = api.exec_create(container, argv, environment=env | {_MARK: token})
        start = engine.url(f"/exec/{created['Id']}/start")
        # The command may print nothing until its time is up; after that the engine itself must have
        # died.
        limits = (CALL_SECONDS, timeout + 3 * GRACE_SECONDS)
        with api.post(start, json={}, stream=True, timeout=limits) as answer:
            timer.start()
            try:
                out, err = _collect(_frames(answer), on_output)
            finally:
                watch.ended.set()
                timer.cancel()
        code = EXPIRED if watch.expired else _code(api, container, created["Id"])
    return ExecResult(code, out, err, watch.expired)


def _frames(answer: requests.Response) -> Iterator[tuple[int, bytes]]:
    """Read pieces of output, each with its stream: 0 for stdout, 1 for stderr.

    Source: Docker Engine API reference, ContainerAttach, "Stream format".
    """
    if not answer.ok:
        raise sdk.errors.DockerException(error_of(answer.content))
    while len(header := answer.raw.read(8)) == 8:
        stream, size = struct.unpack(">BxxxL", header)
        yield int(stream == _STDERR), answer.raw.read(size)


def _collect(
    frames: Iterable[tuple[int, bytes]], on_output: Callable[[str], None] | None
) -> tuple[str, str]:
    kept: tuple[list[bytes], list[bytes]] = ([], [])
    lines = (Lines(), Lines())
    for stream, piece in frames:
        kept[stream].append(piece)
        _tell(on_output, lines[stream].feed(piece))
    for rest in lines:
        _tell(on_output, rest.rest())
    out, err = (b"".join(pieces).decode(errors="replace") for pieces in kept)
    return out, err


def _tell(on_output: Callable[[str], None] | None, lines: Iterable[str]) -> None:
    for line in lines:
        if on_output:
            on_output(line)


def _code(api: docker.APIClient, container: str, exec_id: str) -> int:
    """Read the exit code.

    The engine knows it, and that a container died, a moment after the output has ended.
    """
    deadline = time.monotonic() + GRACE_SECONDS
    while time.monotonic() < deadline:
        state = api.exec_inspect(exec_id)
        if not state["Running"] and state["ExitCode"] is not None:
            break
        time.sleep(_POLL_SECONDS)
    if state["ExitCode"] not in (None, KILLED):
        return int(state["ExitCode"])
    _await_death(api, container)
    return KILLED


def _await_death(api: docker.APIClient, container: str) -> None:
    """Wait up to a second until the engine sees that the container died with its command."""
    deadline = time.monotonic() + 1
    while time.monotonic() < deadline and api.inspect_container(container)["State"]["Running"]:
        time.sleep(_POLL_SECONDS)
