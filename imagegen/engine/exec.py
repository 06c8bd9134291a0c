"""Run a command in a container with a time limit: the Engine API has none of its own."""

from __future__ import annotations

import secrets
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from imagegen.engine.client import TRANSPORT_ERRORS, Engine, engine_errors
from imagegen.engine.lines import Lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import docker
    from docker.types import CancellableStream

EXPIRED = 124
"""The exit code of a command that ran out of time, as of coreutils' `timeout`."""

KILLED = 137
"""The exit code of a command that was killed, or whose container died under it."""

GRACE_SECONDS = 5
_POLL_SECONDS = 0.02
_MARK = "IMAGEGEN_EXEC"

# Every process that the command started has the mark in its environment, also one that left the
# process group, as the daemons of mpirun do. The killer has it as an argument only.
_KILLER = """for process in /proc/[0-9]*; do
  if grep -qa "$1" "$process/environ" 2>/dev/null; then kill -9 "${process#/proc/}"; fi
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
    stream: CancellableStream[tuple[bytes | None, bytes | None]]
    ended: threading.Event = field(default_factory=threading.Event)
    expired: bool = False

    def expire(self) -> None:
        """Kill the command's processes; where that does not end it, the container."""
        self.expired = True
        with self.engine.fresh() as api:
            # A container without a shell, or one that is gone, is dealt with by the next step.
            with suppress(*TRANSPORT_ERRORS):
                killer = api.exec_create(self.container, ["sh", "-c", _KILLER, "sh", self.mark])
                api.exec_start(killer["Id"], detach=True)
            if not self.ended.wait(GRACE_SECONDS):
                with suppress(*TRANSPORT_ERRORS):
                    api.kill(self.container)
        if not self.ended.wait(GRACE_SECONDS):
            self.stream.close()


def run_exec(
    engine: Engine,
    container: str,
    argv: list[str],
    timeout: float,
    env: dict[str, str],
    on_output: Callable[[str], None] | None,
) -> ExecResult:
    """Run `argv` for at most `timeout` seconds; see Container.exec."""
    mark = f"{_MARK}={secrets.token_hex(8)}"
    name, _, value = mark.partition("=")
    with engine_errors(f"run `{argv[0]}` in the container"), engine.fresh() as api:
        created = api.exec_create(container, argv, environment=env | {name: value})
        stream = api.exec_start(created["Id"], stream=True, demux=True)
        watch = _Watch(engine, container, mark, stream)
        timer = threading.Timer(timeout, watch.expire)
        timer.start()
        try:
            out, err = _collect(stream, on_output)
        finally:
            watch.ended.set()
            timer.cancel()
        code = EXPIRED if watch.expired else _code(api, container, created["Id"])
    return ExecResult(code, out, err, watch.expired)


def _collect(
    stream: CancellableStream[tuple[bytes | None, bytes | None]],
    on_output: Callable[[str], None] | None,
) -> tuple[str, str]:
    kept: tuple[list[bytes], list[bytes]] = ([], [])
    lines = (Lines(), Lines())
    for pieces in stream:
        for index, piece in enumerate(pieces):
            if piece:
                kept[index].append(piece)
                _tell(on_output, lines[index].feed(piece))
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
