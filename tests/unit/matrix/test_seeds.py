"""Test five published images as cells: components, tags, messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from imagegen.model.image import ImageSpec
    from imagegen.workflow.project import Project
    from unit.conftest import Ended

    Run = Callable[..., Ended]

TABLES = {
    "taco-train:torch111-cu113-bm-0.4.1": (
        "cu113",
        (
            "os ubuntu20.04, rdma 5.4-3.1.0.0, python 3.8.10, cuda 11.3.109, cudnn 8.2.0, "
            "nccl 2.9.9, lightcc 3.1.1, torch 1.11.0+cu113"
        ),
        ("two NCCLs", "cuda-of-cudnn", "user-space-only", "vendor-parts", "end-of-life"),
    ),
    "taco-train:torch111-cu113-cvm-0.4.3": (
        "cu113",
        (
            "os ubuntu20.04, harp 1.3, python 3.8.10, cuda 11.3.109, cudnn 8.2.0, nccl 2.9.9, "
            "lightcc 3.1.1, torch 1.11.0+cu113"
        ),
        ("two NCCLs", "host-only", "vendor-parts"),
    ),
    "taco-training:cu112-cudnn81-py3-0.3.2": (
        "cu112",
        (
            "os ubuntu18.04, python 3.6.9, cuda 11.2.152, cudnn 8.1.1, nccl 2.8.4, harp 1.3, "
            "lightcc 3.1.1, tensorflow 1.15.5"
        ),
        ("vendor-parts", "cuda-of-tensorflow", "end-of-life"),
    ),
    "taco-training:cu112-cudnn81-py3-0.3.2-noharp-horovod": (
        "cu112",
        "os ubuntu18.04, python 3.6.9, cuda 11.2.152, cudnn 8.1.1, nccl 2.8.4, horovod 0.21.3",
        ("cuda-of-tensorflow",),
    ),
    "pytorch-benchmark:torch1.6.0-py3.7-cuda10.1": (
        "cu101",
        "torch 1.6.0, python 3.7, cuda 10.1, nccl 2.7",
        ("old-base-image",),
    ),
    "imagegen/cu90:9.0-devel-ubuntu16.04-tf1.12-torch1.3-mxnet1.4": (
        "cu90",
        (
            "os ubuntu16.04, cuda 9.0, tensorflow 1.12.0, torch 1.3.0, mxnet 1.4.1, cudnn 7.4.1.5, "
            "nccl 2.3.7, python 3.5, gcc 4.9, torchvision 0.4.1, flavour devel"
        ),
        ("old-base-image", "end-of-life", "brings cuda 9.2 of its own", "two NCCLs"),
    ),
    "imagegen/lab:torch1.5.0-horovod0.19.4-ubuntu18.04": (
        "lab",
        "os ubuntu18.04, torch 1.5.0+cpu, horovod 0.19.4, device cpu",
        ("end-of-life",),
    ),
}
LATER = ("cu118", "cu121", "cu124", "cu126", "cu128")


def cell(project: Project, tag: str) -> ImageSpec:
    (found,) = [spec for spec in project.family(TABLES[tag][0]).specs if spec.tag == tag]
    return found


@pytest.mark.parametrize("tag", TABLES)
def test_a_cell_has_the_components_of_the_published_image(tag: str, project: Project) -> None:
    spec = cell(project, tag)
    called = {pin.component: (pin.version, *pin.release.aliases) for pin in spec.pins}
    called |= {name: (value,) for name, value in spec.given.items()} | {"os": (spec.os.id,)}
    for line in TABLES[tag][1].split(", "):
        name, version = line.split()
        assert any(one.startswith(version) for one in called[name]), (name, called[name])


@pytest.mark.parametrize("tag", TABLES)
def test_a_cell_says_what_works_with_a_reservation(tag: str, project: Project) -> None:
    warnings = cell(project, tag).warnings
    for text in TABLES[tag][2]:
        assert any(text in warning for warning in warnings), (text, warnings)


def test_a_harp_image_has_no_rdma_and_the_other_no_harp(project: Project) -> None:
    on_metal, in_cloud = (cell(project, f"taco-train:torch111-cu113-{x}") for x in TRANSPORTS)
    assert (on_metal.pin("harp"), in_cloud.pin("rdma")) == (None, None)


TRANSPORTS = ("bm-0.4.1", "cvm-0.4.3")


@pytest.mark.parametrize("name", LATER)
def test_the_matrices_of_today_resolve_to_their_cuda(name: str, project: Project) -> None:
    specs = project.family(name).specs
    assert len(specs) > 1
    for spec in specs:
        torch, cuda = spec.pin("torch"), spec.pin("cuda")
        assert torch is not None
        assert cuda is not None
        assert torch.version.endswith(f"+{name}")
        assert cuda.version.startswith(f"{name[2:4]}.{name[4]}.")


NOTES = {
    "taco-train:torch111-cu113-bm-0.4.1": ("host-only",),
    "taco-training:cu112-cudnn81-py3-0.3.2": ("driver-of-cuda", "cuda-of-tensorflow"),
    "pytorch-benchmark:torch1.6.0-py3.7-cuda10.1": ("compute-capability", "host-only"),
    "imagegen/cu90:9.0-devel-ubuntu16.04-tf1.12-torch1.3-mxnet1.4": (
        "two-cudas",
        "driver-of-cuda",
        "gcc-of-tensorflow",
        "frameworks-of-horovod",
    ),
    "imagegen/lab:torch1.5.0-horovod0.19.4-ubuntu18.04": ("horovod-without-cuda",),
}


@pytest.mark.parametrize("tag", NOTES)
def test_a_cell_says_why_it_is_made_of_what_it_is_made_of(tag: str, project: Project) -> None:
    notes = cell(project, tag).cell.notes
    for rule in NOTES[tag]:
        assert any(note.endswith(f" (rule {rule})") for note in notes), (rule, notes)


def test_show_says_in_words_how_a_published_image_came_out(run: Run) -> None:
    said = run("show", "cu90/ubuntu16.04").out
    for text in (
        "nvidia/cuda:9.0-devel-ubuntu16.04",
        "sets: CUDNN_VERSION=7.4.1.5-1+cuda9.0",
        "note: torch 1.3.0 is built for CUDA 9.2 and later, so it brings a 9.2; extensions take",
        "GCC 4.8 built it: use g++ >=4.8,<5 (rule gcc-of-tensorflow)",
        "shared memory 32 GiB, stack 64 MiB",
    ):
        assert text in said


def test_show_names_the_parts_that_a_user_has_to_give(run: Run) -> None:
    said = run("show", "taco-train:torch111-cu113-bm-0.4.1").out
    assert "part: lightcc is built from tencent-lightcc 3.1.1 in artifacts.yaml" in said
    assert "part: rdma is built from mlnx-ofed 5.4-3.1.0.0 in artifacts.yaml" in said
    assert "memlock unlimited, stack 64 MiB, capabilities IPC_LOCK SYS_PTRACE, devices" in said
