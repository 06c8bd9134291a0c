"""Build the same images with `docker buildx bake` and with docker-py, from plain Dockerfiles."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import measure
import peer_bake
from own_dockerd import OwnDockerd

if TYPE_CHECKING:
    from collections.abc import Mapping

    from overlay import Overlay

IMAGEGEN = Path(sys.executable).with_name("imagegen")
LOOP = Path(__file__).with_name("docker_py_loop.py")


@dataclass(frozen=True)
class Peer:
    """Describe one image as a peer builds it."""

    tag: str
    dockerfile: str
    buildargs: Mapping[str, str] = field(default_factory=dict)


Build = Callable[[OwnDockerd, Path, Sequence[Peer]], None]


def versions(engine: OwnDockerd) -> str:
    """Name the versions of all contenders in one line."""
    server = engine.docker("version", "--format", "{{.Server.Version}}").strip()
    buildx = measure.output_of([peer_bake.program(), "version"]).decode().split()[1]
    return f"Docker {server} for all, buildx {buildx}, docker-py {version('docker')}"


def bake(engine: OwnDockerd, folder: Path, peers: Sequence[Peer]) -> None:
    """Build all images in one call; bake decides how many at a time."""
    targets = {
        f"t{at}": {"context": context, "tags": [peer.tag], "args": dict(peer.buildargs)}
        for at, (context, peer) in enumerate(zip(_contexts(folder, peers), peers, strict=True))
    }
    file = folder / "docker-bake.json"
    file.write_text(json.dumps({"group": {"default": {"targets": [*targets]}}, "target": targets}))
    command = [peer_bake.program(), "bake", "--progress", "plain", "-f", str(file)]
    _run(command, engine, folder / "bake.log")


def docker_py(engine: OwnDockerd, folder: Path, peers: Sequence[Peer]) -> None:
    """Build the images one after the other, with the classic builder: docker-py has no other."""
    asked = [
        {"context": context, "tag": peer.tag, "buildargs": dict(peer.buildargs)}
        for context, peer in zip(_contexts(folder, peers), peers, strict=True)
    ]
    file = folder / "images.json"
    file.write_text(json.dumps(asked))
    _run([sys.executable, str(LOOP), str(file)], engine, folder / "docker-py.log")


def imagegen(engine: OwnDockerd, overlay: Overlay, **environ: str) -> None:
    """Run `imagegen build` without its gate, which no peer has."""
    command = [str(IMAGEGEN), "build", "-m", overlay.matrix, "--overlay", str(overlay.folder)]
    _run([*command, "--no-validate"], engine, overlay.folder / "imagegen.log", **environ)


def _contexts(folder: Path, peers: Sequence[Peer]) -> list[str]:
    """Write a folder with only a Dockerfile for each image and return the folders."""
    contexts = [folder / f"context{at}" for at in range(len(peers))]
    for context, peer in zip(contexts, peers, strict=True):
        context.mkdir(exist_ok=True)
        (context / "Dockerfile").write_text(peer.dockerfile)
    return [*map(str, contexts)]


def _run(command: list[str], engine: OwnDockerd, log: Path, **environ: str) -> None:
    with log.open("wb") as file:
        ended = subprocess.run(
            command,
            env={**measure.environment(), **engine.environ, **environ},
            stdout=file,
            stderr=subprocess.STDOUT,
            check=False,
        )
    assert ended.returncode == 0, log.read_text(errors="replace")[-3000:]
