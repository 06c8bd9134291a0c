"""Test that the images of the family pass all checks that can run on a machine without GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from zoo_keeper import ids

if TYPE_CHECKING:
    from command_line import CommandLine

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
    assert ("hvd.size" in passed) == cell.startswith("debian12")
    assert ("rdma.provider" in passed) == cell.endswith("rdma-core")
