"""Run a command in a container with a time limit: the Engine API has none of its own."""

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
"""The exit code of a command that ran out of time, as of coreutils' `timeout`."""

KILLED = 137
"""The exit code of a command that was killed, or whose container died under it."""

GRACE_SECONDS = 5
_POLL_SECONDS = 0.02
_STDERR = 2
_MARK = "IMAGEGEN_EXEC"

# Every process that the command started has the mark in its environment, also one that left the
# process group, as the daemons of mpirun do. The killer has it as an argument only. All are
# stopped first: a parent must not go on, or start more, when its child is gone.
_KILLER = """for signal in STOP KILL; do
  for process in /proc/[0-9]*; do
    if grep -qa "$1" "$process/environ" 2>/dev/null; then kill -$signal "${process#/proc/}"; fi
  done
done"""


@dataclass(frozen=True)
class ExecResult:
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str
    timed_out: bool = False


@dataclass
class _Watch:
    """Kills a command when its time is up, so that reading its output ends."""

    engine: Engine
    container: str
    mark: str
    ended: threading.Event = field(default_factory=threading.Event)
    expired: bool = False

    def expire(self) -> None:
        """Kill the command's processes; where that does not end it, the container."""
        self.expired = True
        with self.engine.fresh() as api:
            # A container without a shell, or one that is gone, is dealt with by the next step.
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
        # Silence is only broken by the watch: longer than that, the engine itself is gone.
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
    """Pieces of output, each with its stream: 0 for stdout, 1 for stderr.

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
    """The exit code. The engine learns it, and a container's death, a moment after the output."""
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
    """Give the engine a second to see that the container died with its command, if it did."""
    deadline = time.monotonic() + 1
    while time.monotonic() < deadline and api.inspect_container(container)["State"]["Running"]:
        time.sleep(_POLL_SECONDS)
