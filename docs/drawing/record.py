"""`python docs/drawing/record.py` records what the pictures of screens show, with a real engine.

It builds the matrix `cpu` under tags of its own after an edit of the template of SSH, so that some
layers come from the cache, and removes the images. It starts one of the family's images without the
shared memory that it asks for.
"""

from __future__ import annotations

import secrets
import sys
import time
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from imagegen.console.console import Console, make_console
from imagegen.engine import client
from imagegen.engine.containers.containers import LaunchSpec, running
from imagegen.engine.images import local_images
from imagegen.errors import EngineError
from imagegen.events.events import CellEnded, CellLogged, ImageValidated, StepOutput
from imagegen.events.sinks import fan_out
from imagegen.events.stream import to_line
from imagegen.model.build import BuildOptions
from imagegen.workflow.build import build

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from imagegen.events.events import Event, Sink

REPOSITORY = Path(__file__).parents[2]
RECORDED = Path(__file__).with_name("recorded")
IMAGE = "imagegen/cpu:debian12-torch1.13.1-rdma-core"
VALIDATE = ("validate", "--only", "mpi,lim", "--json", "-")
MATRIX = "matrices/cpu.yaml"
EDITED = "dockerfiles/components/ssh/install.j2"
SECONDS_A_LINE = 1.0
"""Of the output of a cell one line is kept for so many seconds."""


class Recorder:
    """Keeps what a terminal shows of events, with the seconds since the run began: a line each.

    Addresses and paths of this machine are left out.
    """

    def __init__(self) -> None:
        self._began, self.lines = time.monotonic(), list[str]()
        self._last: dict[str, float] = {}

    def __call__(self, event: Event) -> None:
        """Keep the line of an event."""
        at = time.monotonic() - self._began
        if isinstance(event, (CellLogged, ImageValidated)):
            return
        if isinstance(event, StepOutput):
            if "://" in event.line or at - self._last.get(event.cell, -1.0) < SECONDS_A_LINE:
                return
            self._last[event.cell] = at
        if isinstance(event, CellEnded):
            event = replace(event, record=replace(event.record, log=""))
        self.lines.append(f"{at:.2f} {to_line(event)}")


class RecordingConsole(Console):
    """Prints plain lines, and records the events of builds."""

    recorder: Recorder

    @contextmanager
    def builds(self, cells: Sequence[str]) -> Iterator[Sink]:
        """Show the builds, and record their events."""
        self.recorder = Recorder()
        with super().builds(cells) as show:
            yield fan_out(self.recorder, show)


def record_build() -> None:
    """Build the family after an edit, and write the events down."""
    plain = make_console("plain")
    console = RecordingConsole(plain._out, plain._err)
    token = secrets.token_hex(4)
    with TemporaryDirectory() as folder, _removed(f"imagegen/picture-{token}:"):
        build(BuildOptions("cpu", overlay=_edited(Path(folder), token)), console)
    text = "\n".join(console.recorder.lines) + "\n"
    (RECORDED / "build.events").write_text(text, encoding="utf-8")


def _edited(overlay: Path, token: str) -> Path:
    """Write an overlay in which the images have tags of their own and SSH a step more."""
    for name, before in ((MATRIX, "imagegen/cpu:"), (EDITED, "")):
        text = (REPOSITORY / name).read_text(encoding="utf-8")
        (overlay / name).parent.mkdir(parents=True)
        edited = text.replace(before, f"imagegen/picture-{token}:") if before else _step(text)
        (overlay / name).write_text(edited.replace("TOKEN", token), encoding="utf-8")
    return overlay


def _step(template: str) -> str:
    return f"RUN : TOKEN\n{template}"


@contextmanager
def _removed(prefix: str) -> Iterator[None]:
    """Remove the images whose tags begin so."""
    try:
        yield
    finally:
        engine = client.connect()
        with closing(engine.api):
            for image in local_images.list_labelled(engine, "io.imagegen.matrix=cpu"):
                if any(tag.startswith(prefix) for tag in image.tags):
                    local_images.remove(engine, image.id, force=True)


def record_failed_check() -> None:
    """Run checks in an image that has 64 MiB of shared memory, the engine's default."""
    engine = client.connect()
    spec = LaunchSpec(IMAGE, ("sleep", "infinity"), hostname="trainer-0")
    with closing(engine.api), running(engine, spec) as container:
        done = container.exec(VALIDATE, 120)
    if done.code != 1:
        raise EngineError.of("no check failed", evidence=[done.out, done.err])
    (RECORDED / "failed-check.json").write_text(done.out, encoding="utf-8")


WHAT = {"build": record_build, "failed-check": record_failed_check}

if __name__ == "__main__":
    for name in sys.argv[1:] or WHAT:
        WHAT[name]()
