"""Measure row 1: a family of 8 GPU images from nothing, beside bake and docker-py.

`IMAGEGEN_BENCH_SMALL=1` uses two small wheels instead of torch, to try the benchmark; such results
are not kept. Each contender runs once: that takes most of an hour and 25 GB of disk at a time.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import asdict, astuple, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import measure
import peers
from gpu_family import DOCUMENTS, GpuFamily
from own_dockerd import BASE, OwnDockerd, folder_of_benchmarks, own_dockerd
from package_server import PackageServer, package_server
from peers import Peer
from row import GIGABYTE, Contender, Row, Target

from imagegen.config.payload import shipped_root

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CELLS, GROUPS = 8, 4
TIMES, DISK = 4.0, 0.35
SMALL = bool(os.environ.get("IMAGEGEN_BENCH_SMALL"))
WHEELS = ("networkx==3.2.1", "sympy==1.13.3") if SMALL else ("torch==2.0.1", "torchvision==0.15.2")
NAME = "small" if SMALL else "torch"
BUILD_ENV = shipped_root() / "dockerfiles/build-env"
CONSTRAINTS = BUILD_ENV / "torch-constraints.txt"
NOTES = folder_of_benchmarks() / f"{NAME}-{measure.commit()}.json"
"""The results so far for this commit, so that a run that was interrupted can go on."""

ABOUT = """\
8 images on Debian 12, each with torch 2.0.1 for CUDA 11.7 and all that it needs ({wheels:.1f} GB of
wheels): with and without build-essential, with and without the RDMA user space, with Open MPI or
MPICH. imagegen orders the layers itself: {order}. The peers install the same
packages in the same versions, in the order in which the vendors' documents list them:
{documents}. Everyone starts on an engine of their own with nothing but the
base image, and downloads from one server on this machine that has all wheels and packages: nobody
waits for a network. The peers install wheels by pip, as the documents do; imagegen by uv, which it
gets from that server too, in the same step. It builds without its gate, and its disk has what uv
unpacked in it once more, as a cache. The 8 images of a peer do not fit this disk: they are made two
by two, each pair on a fresh engine, and pairs are added up; what pairs do again that one run would
not is one step of build-essential. docker-py makes the first pair alone. Not measured: Horovod's
own Dockerfile has MPI behind torch, which makes 4 layers of torch out of 8. One run each."""

WHY = """\
what all images stand on is made by one process after the other: Python's step, torch's, and the
packing of torch's layer. A peer makes two such layers at a time on these two cores"""


@dataclass(frozen=True)
class Cold:
    """Hold one build from nothing: wall and CPU seconds, bytes on the disk, bytes downloaded."""

    wall: float
    cpu: float
    disk_bytes: int
    downloaded: int

    def __add__(self, other: Cold) -> Cold:
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Cold(*(one + two for one, two in pairs))

    def __str__(self) -> str:
        disk, down = self.disk_bytes / GIGABYTE, self.downloaded / GIGABYTE
        return (
            f"{self.wall:.0f} s, {self.cpu:.0f} s of CPU, {disk:.2f} GB on the disk, "
            f"{down:.2f} GB downloaded"
        )

    def contender(self, name: str) -> Contender:
        """Return the build as a contender of a row."""
        return Contender.of(name, [(self.wall, self.cpu)], self.disk_bytes)


@dataclass(frozen=True)
class Bench:
    """Hold a fresh engine with only the base image, the family, and the server of its packages."""

    engine: OwnDockerd
    family: GpuFamily
    server: PackageServer

    def peers(self) -> list[list[Peer]]:
        """Return the images for a peer, in groups."""
        return self.family.peers(DOCUMENTS, self.server.index, self.server.proxy)

    def cold(self, build: Callable[[], object], cells: int) -> Cold:
        """Measure a build, and check that it made all images and that one of them works."""
        before, sent = self.engine.disk_bytes(), self.server.sent
        wall, cpu = self.engine.timed(build)
        found = Cold(wall, cpu, self.engine.disk_bytes() - before, self.server.sent - sent)
        made = [one for one in self.engine.images() if one.startswith("bench-gpu/")]
        assert len(made) == cells, made
        module = "networkx" if SMALL else "torch"
        self.engine.docker("run", "--rm", made[-1], "python3", "-c", f"import {module}")
        return found


@contextmanager
def bench() -> Iterator[Bench]:
    """Start an engine and a package server for the family; both end with the block."""
    folder = folder_of_benchmarks()
    with own_dockerd() as engine, tempfile.TemporaryDirectory(dir=folder) as place:
        family = GpuFamily(Path(place), SMALL)
        family.write()
        with package_server(engine.gateway, wheelhouse(), folder / "apt") as server:
            yield Bench(engine, family, server)


def wheelhouse() -> Path:
    """Return the folder with the wheels, from the index that this machine's pip uses."""
    folder = folder_of_benchmarks() / f"wheels-{NAME}"
    if not folder.exists():
        part = folder.with_suffix(".part")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-cache-dir"]
        command += ["--only-binary=:all:", "--constraint", str(CONSTRAINTS), "-d", str(part)]
        subprocess.run([*command, *WHEELS, _uv()], check=True)
        part.rename(folder)
    return folder


def _uv() -> str:
    """Return the release of uv that builds install for themselves, as a requirement."""
    found = re.search(r"^UV=(\S+)$", (BUILD_ENV / "install-wheels.sh").read_text(), re.MULTILINE)
    assert found is not None
    return f"uv=={found[1]}"


def fill() -> None:
    """Request every apt package once, so that the server has all of them."""
    with bench() as one:
        apt = {
            f"'{name}={wanted}'"
            for spec in one.family.specs()
            for pin in spec.pins
            for name, wanted in pin.release.apt.items()
        }
        install = "apt-get install -y --no-install-recommends --download-only"
        text = f"FROM {BASE}\nRUN apt-get update && {install} {' '.join(sorted(apt))}\n"
        peer = Peer("bench-fill:1", text, one.server.proxy)
        peers.docker_py(one.engine, one.family.folder, [peer])


def noted(name: str, build: Callable[[], Cold]) -> Cold:
    """Return the result of a build: from an earlier run of this commit, else by building."""
    notes = _notes()
    if name not in notes:
        found = build()
        load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
        print(f"{time.strftime('%H:%M:%S')} {name}: {found}, load {load}", file=sys.stderr)
        NOTES.write_text(json.dumps({**notes, name: asdict(found)}))
    return Cold(**_notes()[name])


def _notes() -> dict[str, Any]:
    return json.loads(NOTES.read_text()) if NOTES.exists() else {}


def ours() -> Cold:
    """Measure imagegen."""
    with bench() as one:
        return one.cold(
            lambda: peers.imagegen(one.engine, one.family.overlay, **one.server.environ), CELLS
        )


def theirs(name: str, build: peers.Build, groups: int = GROUPS) -> Cold:
    """Measure a peer's images, in this many groups with a fresh engine for each."""
    made = [
        noted(f"{name}, {group + 1} of {GROUPS}", partial(_group, build, group))
        for group in range(groups)
    ]
    return sum(made[1:], made[0])


def _group(build: peers.Build, group: int) -> Cold:
    with bench() as one:
        images = one.peers()[group]
        assert len(images) * GROUPS == CELLS
        return one.cold(lambda: build(one.engine, one.family.folder, images), len(images))


def report() -> list[str]:
    """Return the section of the page."""
    return measured().lines()


def measured() -> Row:
    """Measure every contender and return the row."""
    fill()
    own = noted("imagegen", ours)
    bake = theirs("bake", peers.bake)
    loop = theirs("docker-py", peers.docker_py, 1)
    found = (
        own.contender("imagegen"),
        bake.contender("bake"),
        loop.contender(f"docker-py, the first {CELLS // GROUPS} images alone"),
    )
    with bench() as one:
        versions = peers.versions(one.engine)
        about = ABOUT.format(
            wheels=sum(path.stat().st_size for path in wheelhouse().iterdir()) / GIGABYTE,
            order=", ".join(one.family.order()),
            documents=", ".join(DOCUMENTS),
        )
    return Row(1, f"{CELLS} GPU images, cold", about, versions, found, _targets(own, bake))


def _targets(own: Cold, bake: Cold) -> tuple[Target, Target]:
    times = bake.wall / own.wall
    disk = own.disk_bytes / bake.disk_bytes
    faster, smaller = times >= TIMES, disk <= DISK
    found = f"{times:.1f} times, and {bake.cpu / own.cpu:.1f} times less CPU"
    return (
        Target(
            f"at least {TIMES:.0f} times faster than bake", found, faster, "" if faster else WHY
        ),
        Target(f"at most {DISK} of bake's disk", f"{disk:.2f} of it", smaller),
    )
