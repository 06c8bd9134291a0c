"""Test that the images of the family pass all checks that can run on a machine without GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from running_image import said, started
from zoo_keeper import ids

from imagegen.engine.images import local_images
from imagegen.validation.in_container import contract_of, launch_spec
from validate.benchmark.output import parse

if TYPE_CHECKING:
    from collections.abc import Callable

    from command_line import CommandLine

    from imagegen.engine.client import Engine

CELLS = [
    pytest.param("debian12-none", marks=pytest.mark.long),
    "debian12-rdma-core",
    "debian13-none",
    pytest.param("debian13-rdma-core", marks=pytest.mark.long),
]
"""In `make test`: both releases, with RDMA and without, with Horovod and without."""


@pytest.mark.parametrize("cell", CELLS)
def test_a_healthy_image_passes(
    cpu_family: dict[str, str], command_line: CommandLine, cell: str
) -> None:
    (row,) = command_line("validate", "--format", "json", cpu_family[cell]).result
    report = row["report"]
    assert ids(report, "failed") == ids(report, "error") == []
    passed = ids(report, "passed")
    assert len(passed) > 30
    assert {"torch.version", "mpi.2rank", "ssh.login", "ddp.init", "ddp.torchrun"} <= {*passed}
    assert {name for name in passed if name.startswith("image.")} == {
        "image.private-key-in-layer", "image.secret-in-layer", "image.secret-in-settings",
    }  # fmt: skip
    assert ({"hvd.size", "hvd.torch"} <= {*passed}) == cell.startswith("debian12")
    assert ("rdma.provider" in passed) == cell.endswith("rdma-core")


@pytest.fixture(scope="module")
def three_frameworks(other_family: Callable[[str], dict[str, str]]) -> str:
    """Return the image of TensorFlow, PyTorch and MXNet with one Horovod."""
    return other_family("frameworks")["frameworks/debian11"]


@pytest.mark.long
def test_one_horovod_serves_three_frameworks(
    three_frameworks: str, command_line: CommandLine
) -> None:
    (row,) = command_line("validate", "--format", "json", three_frameworks).result
    report = row["report"]
    assert ids(report, "failed") == ids(report, "error") == []
    measured = {check["id"]: check["measured"] for check in report["checks"]}
    passed = {*ids(report, "passed")}
    assert {"hvd.torch-abi", "hvd.tf-abi", "hvd.mxnet-abi", "os.elf-deps", "os.files"} <= passed
    for name in ("torch", "tf", "mxnet"):
        assert {f"{name}.import", f"{name}.version"} <= passed
        assert measured[f"hvd.{name}"] == "1 + 2 is 3.0 and 3.0"
    assert measured["hvd.build"] == "mpi for PyTorch, TensorFlow, MXNet"


@pytest.mark.long
@pytest.mark.parametrize("how", ["--eager", "--graph"])
def test_tensorflow_trains_where_the_documents_start_it(
    this_engine: Engine, three_frameworks: str, how: str
) -> None:
    """Two ranks, with the arguments of the documents and one that chooses how it computes."""
    line = (
        "/usr/local/openmpi/bin/mpirun -np 2 --allow-run-as-root --oversubscribe -bind-to none"
        " -mca btl ^openib python3 /mnt/tensorflow_synthetic_benchmark.py --model=small"
        f" --batch-size=4 --length=quick --allreduce {how}"
    )
    image = local_images.find(this_engine, three_frameworks)
    assert image is not None
    spec = launch_spec(image.id, contract_of(three_frameworks, image.labels))
    with started(this_engine, spec) as container:
        found = parse(said(container, "sh", "-c", line, seconds=600))
    assert sorted(found.sums) == [(0, 2, 3.0), (1, 2, 3.0)]
    assert [(one.ranks, one.device) for one in found.totals] == [(2, "CPU")]
