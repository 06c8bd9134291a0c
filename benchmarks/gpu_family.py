"""Define a family of 8 images with a GPU build of PyTorch: 2 toolchains x 2 RDMA x 2 MPI.

imagegen uses its own templates for python, rdma and torch; mpi and toolchain are apt packages. The
peers' Dockerfiles install exactly the packages that imagegen pinned, in one `RUN` for each
component. Their order is the one in which the vendors' documents list the contents of their images:
compilers with the base, OFED, Python, MPI, and the framework last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from overlay import OS, Overlay
from own_dockerd import BASE
from peers import Peer

from imagegen.workflow.project import Project

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from imagegen.model.image import ImageSpec
    from imagegen.model.release import Release

DOCUMENTS = ("toolchain", "rdma", "python", "mpi", "torch")

APT = '{% import "macros/apt.j2" as apt %}\n{{ apt.install(os, release.apt) }}'
TORCH = "2.0.1+cu117 pypi"
SMALL = {
    "version": "2.0.1",
    "wheels": {"networkx": "3.2.1", "sympy": "1.13.3"},
    "provides": {"torch-nccl": "2.14.3", "torchvision": "0.15.2", "cxx11-abi": "0"},
}
"""Replaces torch to try all of this in a minute."""

WHEELS = """\
{% import "macros/pip.j2" as pip %}
{{ pip.install(release.wheels) }}"""


@dataclass(frozen=True)
class GpuFamily:
    """Hold the family in a folder, as an overlay and as the peers' Dockerfiles.

    If `small`, two small wheels take the place of torch.
    """

    folder: Path
    small: bool = False

    @property
    def overlay(self) -> Overlay:
        """Return the overlay that imagegen builds from."""
        return Overlay(self.folder / "overlay", "gpu", "bench-gpu/ours")

    def write(self) -> None:
        """Write the components and the matrix of the overlay."""
        overlay = self.overlay
        mpi = [
            {"version": "4.1.4", "variant": "openmpi", "apt": {"openmpi-bin": "4.1.4-*"}},
            {"version": "4.0.2", "variant": "mpich", "apt": {"mpich": "4.0.2-*"}},
        ]
        overlay.component("mpi", APT, mpi, seconds="25", installs=["apt"])
        gcc = [{"version": "12.9", "apt": {"build-essential": "12.9"}}]
        overlay.component("toolchain", APT, gcc, seconds="40", installs=["apt"])
        if self.small:
            keys = {"seconds": "75", "needs": ["python"], "installs": ["wheels"]}
            overlay.component("torch", WHEELS, [SMALL], **keys)
        axes = {
            "toolchain": ["none", "12.9"],
            "rdma": ["none", "distro"],
            "mpi": ["openmpi", "mpich"],
        }
        torch = "any" if self.small else TORCH
        overlay.write_matrix(axes, {"python": "3.11", "torch": torch})

    def specs(self) -> tuple[ImageSpec, ...]:
        """Return the resolved images of the family."""
        return Project(self.overlay.folder).family(self.overlay.matrix).specs

    def order(self) -> tuple[str, ...]:
        """Return the order of imagegen's layers, the lowest first."""
        return Project(self.overlay.folder).family(self.overlay.matrix).orders[OS]

    def peers(
        self, order: tuple[str, ...], index: str, buildargs: Mapping[str, str]
    ) -> list[list[Peer]]:
        """Return the images for a peer, in groups with the same first two components in the order.

        Groups share at most the step of the first component.
        """
        found: dict[tuple[str, ...], list[Peer]] = {}
        for spec in self.specs():
            pins = [spec.pin(name) for name in order[:2]]
            common = tuple(pin.version if pin else "-" for pin in pins)
            tag = spec.tag.replace("/ours:", "/peer:")
            peer = Peer(tag, dockerfile(spec, order, index), buildargs)
            found.setdefault(common, []).append(peer)
        return [*found.values()]


def dockerfile(spec: ImageSpec, order: tuple[str, ...], index: str) -> str:
    """Write a Dockerfile as people do: each step removes the lists and caches that it made."""
    pins = [spec.pin(name) for name in order]
    steps = [step for pin in pins if pin is not None for step in _steps(pin.release, index)]
    return "\n".join([f"FROM {BASE}", *steps, 'CMD ["bash"]', ""])


def _steps(release: Release, index: str) -> list[str]:
    steps = []
    if release.apt:
        packages = " ".join(f"'{name}={wanted}'" for name, wanted in release.apt.items())
        steps.append(
            "RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y "
            f"--no-install-recommends {packages} && rm -rf /var/lib/apt/lists/* /var/cache/apt/*"
        )
    if release.wheels:
        wheels = " ".join(f"{name}=={version}" for name, version in release.wheels.items())
        host = urlsplit(index).hostname
        steps.append(
            "RUN pip3 install --no-cache-dir --break-system-packages "
            f"--index-url {index} --trusted-host {host} {wheels}"
        )
    return steps
