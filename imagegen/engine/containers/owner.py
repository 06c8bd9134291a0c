"""Mark containers with the process that started them, and find those whose process is dead.

`kill -9` leaves containers behind. The mark names the process so that no other one can be meant: by
the boot, the PID namespace, its number and when it started. A process of another boot or namespace
is not judged: it may run on another host, with the same engine.
"""

from __future__ import annotations

import os
import re
import secrets
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from imagegen.engine import sdk
from imagegen.engine.client import Engine, engine_errors
from imagegen.errors import EngineError
from imagegen.model.labels import LABEL_PROCESS

if TYPE_CHECKING:
    from imagegen.engine.answers import ContainerRow

_OURS = re.compile(r"^/imagegen-[0-9a-f]{12}$")
_STOPPED = ("created", "exited", "dead")
_MARK_PARTS = 3
_STARTED = 19
"""The place of the start time in `/proc/PID/stat`, after the name of the program: proc(5)."""


def new_name() -> str:
    """Make a name for a container: it is known before the engine makes the container."""
    return f"imagegen-{secrets.token_hex(6)}"


@cache
def own_mark() -> dict[str, str]:
    """Return the label that names this process; empty where the system does not say enough."""
    space, pid = _space(), str(os.getpid())
    started = _start_of(pid)
    return {LABEL_PROCESS: f"{space} {pid} {started}"} if space and started else {}


def is_ours(container: ContainerRow) -> bool:
    """Return whether imagegen made a container."""
    return any(map(_OURS.match, container.get("Names") or ()))


def runs(container: ContainerRow) -> bool:
    """Return whether a container runs, or is paused."""
    return container.get("State") not in _STOPPED


def is_left(container: ContainerRow) -> bool:
    """Return whether the process that made one of our containers is gone.

    Where that is not known, a stopped container is one that was left.
    """
    mark = (container.get("Labels") or {}).get(LABEL_PROCESS, "").split()
    if len(mark) != _MARK_PARTS or mark[0] != _space():
        return not runs(container)
    _, pid, started = mark
    return _start_of(pid) != started


def remove_left(engine: Engine) -> tuple[str, ...]:
    """Remove the containers that killed runs left on an engine; return their names.

    Nothing is removed where the engine refuses: `imagegen prune` tries it again.
    """
    try:
        with engine_errors("list containers"):
            rows = engine.api.containers(all=True, filters={"label": LABEL_PROCESS})
            left = [row["Names"][0][1:] for row in rows if is_ours(row) and is_left(row)]
            for name in left:
                with suppress(sdk.errors.APIError):
                    engine.api.remove_container(name, force=True, v=True)
    except EngineError:
        return ()
    return tuple(left)


@cache
def _space() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _start_of(pid: str) -> str:
    """Return when a process started, in ticks since the boot; empty where there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return ""
    facts = stat.rpartition(")")[2].split()
    return "" if facts[0] in "ZX" else facts[_STARTED]
