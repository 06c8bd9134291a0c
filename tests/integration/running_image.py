"""Run containers of finished images, with keys made by the entrypoint, and commands in them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from imagegen.engine.containers.containers import Container, LaunchSpec, running

if TYPE_CHECKING:
    from collections.abc import Iterator

    from imagegen.engine.client import Engine

SLEEP = ("sleep", "infinity")


@contextmanager
def started(engine: Engine, spec: LaunchSpec) -> Iterator[Container]:
    """Start a container and wait until its entrypoint has made the keys and become the command."""
    with running(engine, spec) as container:
        waiting = "while grep -q imagegen-entrypoint /proc/1/cmdline; do sleep 0.1; done"
        said(container, "sh", "-c", waiting)
        yield container


def said(container: Container, *argv: str, seconds: float = 60) -> str:
    """Return what a command printed; it has to succeed."""
    result = container.exec(list(argv), seconds)
    assert result.code == 0, result.out + result.err
    return result.out
