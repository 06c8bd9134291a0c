"""Compare imagegen's renderer with hpccm's API: Dockerfiles with the same parts and versions."""

from __future__ import annotations

import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import hpccm
import measure
from hpccm.building_blocks import apt_get, nccl, openmpi, pip
from hpccm.primitives import baseimage

import matrices
from imagegen.workflow.project import Project

if TYPE_CHECKING:
    from imagegen.model.image import ImageSpec

SIZES = (100, 500)
RUNS = 5

ABOUT = """\
hpccm {version}. The same cells; both write CUDA's base image, Open MPI compiled, NCCL and cuDNN
from packages and torch from pip, in the same versions (checked in every Dockerfile). hpccm is
called through its API in this process, its fastest way, on versions that imagegen has already
chosen: it has no matrix and checks no combination. imagegen also renders ssh, validate and the
context files, and hashes all of it; it is shown with its resolving and without. CPU seconds."""


def marks_of(spec: ImageSpec) -> list[str]:
    """List texts that a Dockerfile of this cell must contain, whoever wrote it."""
    version = {pin.component: pin.version for pin in spec.pins}
    return [
        f"openmpi-{version['openmpi']}.tar",
        f"libnccl2={version['nccl']}",
        f"libcudnn9-cuda-12={version['cudnn']}",
        f"torch=={version['torch'].partition('+')[0]}",
    ]


def by_hpccm(spec: ImageSpec) -> str:
    """Write the recipe that a user of hpccm would write for this cell.

    It has the base image, Open MPI compiled, NCCL and cuDNN from packages, and torch from pip.
    """
    pin = {pin.component: pin.release for pin in spec.pins}
    flavour = spec.given["flavour"]
    stage = hpccm.Stage()
    stage += baseimage(image=f"nvidia/cuda:12.4.1-{flavour}-ubuntu22.04")
    stage += openmpi(version=pin["openmpi"].version, cuda=False, infiniband=False)
    stage += nccl(version=f"{pin['nccl'].version}-1", cuda=pin["nccl"].variant.removeprefix("cuda"))
    stage += apt_get(ospackages=[f"libcudnn9-cuda-12={pin['cudnn'].version}-1"])
    stage += pip(packages=[f"torch=={pin['torch'].version.partition('+')[0]}"], pip="pip3")
    return str(stage)


def report() -> list[str]:
    """Measure each size and return the section of the page."""
    hpccm.config.set_container_format("docker")
    hpccm.config.set_linux_distro("ubuntu22")
    lines = [
        "## Rendering, beside hpccm",
        "",
        ABOUT.format(version=version("hpccm")),
        "",
        "| cells | imagegen: resolve + render | its render | hpccm: render | per Dockerfile |",
        "|---:|---:|---:|---:|---:|",
    ]
    for cells in SIZES:
        lines.append(_row(cells))
    return [*lines, ""]


def _row(cells: int) -> str:
    with tempfile.TemporaryDirectory() as folder:
        name = matrices.write(Path(folder), cells)
        warm = Project(Path(folder))
        family = warm.family(name)
        for recipe in warm.recipes(family):
            for text in (recipe.dockerfile, by_hpccm(recipe.spec)):
                missing = [mark for mark in marks_of(recipe.spec) if mark not in text]
                assert missing == [], missing

        def whole() -> object:
            project = Project(Path(folder))
            return project.recipes(project.family(name))

        taken = measure.alternately(
            {
                "whole": whole,
                "render": lambda: Project(Path(folder)).recipes(family),
                "hpccm": lambda: [by_hpccm(spec) for spec in family.specs],
            },
            RUNS,
        )
    whole_, render, peer = (taken[key].cpu for key in ("whole", "render", "hpccm"))
    each = " / ".join(f"{one / cells * 1000:.2f}" for one in (whole_, render, peer))
    return f"| {cells} | {whole_:.3f} s | {render:.3f} s | {peer:.3f} s | {each} ms |"
