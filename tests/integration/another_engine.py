"""Start other engines beside that of this machine: Debian 13's Docker 26 and Debian 12's podman."""

from __future__ import annotations

import subprocess
import time
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from debian_root import DebianRoot
from own_engine import DIES_WITH_THE_TEST, OwnEngine, bridged

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from imagegen.engine.client import Engine

DOCKER_26 = DebianRoot("trixie", ("docker.io", "mount"))
PODMAN = DebianRoot("bookworm", ("podman", "mount"))
SECONDS = 60


@contextmanager
def docker_26(folder: Path, first: Engine, base: str) -> Iterator[OwnEngine]:
    """Run Docker 26 while the block lasts, with the base of the first engine and no other image."""
    DOCKER_26.ensure()
    with bridged(folder, DOCKER_26) as made:
        _copy(first, made, base)
        yield made


def _copy(first: Engine, other: OwnEngine, ref: str) -> None:
    with closing(other.connected().api) as api, closing(first.fresh()) as source:
        saved = b"".join(source.get_image(ref))
        loaded = list(api.load_image(saved))  # type: ignore[no-untyped-call]
    assert ref in str(loaded), loaded


@contextmanager
def podman(folder: Path) -> Iterator[str]:
    """Yield the address of podman's socket for Docker's API."""
    PODMAN.ensure()
    socket = folder / "podman.sock"
    options = [f"--root={folder}/data", f"--runroot={folder}/run", f"--tmpdir={folder}/tmp"]
    service = ["podman", *options, "system", "service", "--time=0", f"unix://{socket}"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*DIES_WITH_THE_TEST, *PODMAN.entering(folder), *service], stdout=log, stderr=log
        )
    try:
        deadline = time.monotonic() + SECONDS
        while not socket.exists():
            assert process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < deadline, "podman does not listen"
            time.sleep(0.05)
        yield f"unix://{socket}"
    finally:
        process.terminate()
        process.wait(SECONDS)
