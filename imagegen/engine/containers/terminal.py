"""Open a shell in a container on the terminal of this process, as `docker run -it` does."""

from __future__ import annotations

import os
import select
import shutil
import signal
import termios
import tty
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from imagegen.engine import sdk
from imagegen.engine.client import Engine, engine_errors
from imagegen.engine.containers import owner
from imagegen.engine.containers.containers import Container
from imagegen.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import docker

    from imagegen.model.recipe import ContextFile

_SHELL = ("sh", "-c", "command -v bash >/dev/null && exec bash; exec sh")
_PIECE = 65536
_KEYS, _SCREEN = 0, 1


def has_terminal() -> bool:
    """Return whether this process has a terminal for input and output."""
    return os.isatty(_KEYS) and os.isatty(_SCREEN)


def shell(engine: Engine, image: str, files: Sequence[ContextFile] = ()) -> int:
    """Run a shell until it ends, and return its exit code.

    `files` are in /mnt, as in build steps. Raises EngineError where the container does not start,
    or where the connection cannot carry a terminal.
    """
    if not engine.endpoint.url.startswith("unix://"):
        text = f"no terminal over {engine.endpoint.url.partition(':')[0]}"
        raise EngineError.of(text, hint=f"docker run -it --rm {image} bash")
    name = owner.new_name()
    with engine_errors("open a shell"), engine.fresh() as api:
        created = api.create_container(
            image,
            command=list(_SHELL),
            tty=True,
            stdin_open=True,
            name=name,
            entrypoint="",
            labels=owner.own_mark(),
        )
        try:
            _bring(Container(engine, created["Id"], name), files)
            return _run(api, str(created["Id"]))
        finally:
            with suppress(sdk.errors.NotFound):
                api.remove_container(created["Id"], force=True)


def _bring(container: Container, files: Sequence[ContextFile]) -> None:
    for file in files:
        container.write_file(f"/mnt/{file.path.rpartition('/')[2]}", file.data, file.mode)


def _run(api: docker.APIClient, container_id: str) -> int:
    ways = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
    connection = api.attach_socket(container_id, params=ways)

    def resize(*_: object) -> None:
        columns, lines = shutil.get_terminal_size()
        # A container that has just ended has no size.
        with suppress(*sdk.transport_errors()):
            api.resize(container_id, height=lines, width=columns)

    api.start(container_id)
    with _raw(_KEYS), _on_resize(resize):
        resize()
        _talk(_KEYS, _SCREEN, connection.fileno())
    return int(api.wait(container_id)["StatusCode"])


@contextmanager
def _raw(terminal: int) -> Iterator[None]:
    """Send every key to the shell, Ctrl-C too."""
    before = termios.tcgetattr(terminal)
    try:
        tty.setraw(terminal)
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


@contextmanager
def _on_resize(resize: Callable[..., None]) -> Iterator[None]:
    before = signal.signal(signal.SIGWINCH, resize)
    try:
        yield
    finally:
        signal.signal(signal.SIGWINCH, before)


def _talk(keys: int, screen: int, connection: int) -> None:
    """Copy keys and output until the shell closes its side."""
    listened = [keys, connection]
    while True:
        for ready in select.select(listened, [], [])[0]:
            data = os.read(ready, _PIECE)
            if ready == connection and not data:
                return
            if not data:
                listened.remove(keys)
            _write(screen if ready == connection else connection, data)


def _write(target: int, data: bytes) -> None:
    while data:
        select.select([], [target], [])
        data = data[os.write(target, data) :]
