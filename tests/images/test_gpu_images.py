"""GPU images built for real from Debian's archive and pip's default index, measured without a GPU.

Hours of a small machine and 20 GB of disk when nothing is cached: `make test-images`, and no part
of `make test`. The images stay on the engine, as those of a user would.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping

SCRIPT = Path(sys.executable).with_name("imagegen")
SECONDS = 3 * 3600
"""For one image on a small machine with nothing cached; one is built at a time."""

SITE_313 = "/usr/local/lib/python3.13/dist-packages/nvidia"
SITE_311 = "/usr/local/lib/python3.11/dist-packages/nvidia"

TORCH_26 = {
    "cuda.cudart": ("12.4 from /lib/x86_64-linux-gnu/libcudart.so.12",),
    "cudnn.version": (f"9.1.0 from {SITE_313}/cudnn/lib/libcudnn.so.9", "for CUDA 12.4"),
    "torch.version": ("2.6.0+cu124 from",),
    "torch.cuda-build": ("CUDA 12.4",),
    "torch.nccl": ("NCCL 2.21.5",),
    "torch.cudnn": ("90100",),
}
DEVEL = {"cuda.toolkit": ("nvcc 12.4.131", "libcudart 12.4")}
RUNTIME = {"cuda.toolkit": ("libcudart 12.4",)}
DEBIANS_NCCL = {
    "nccl.version": ("2.22.3 from /lib/x86_64-linux-gnu/libnccl.so.2",),
    "nccl.copies": ("2.22.3+cuda12.1 in /lib", f"2.21.5+cuda12.4 in {SITE_313}"),
}
WHEELS_NCCL = {
    "nccl.version": (f"2.21.5 from {SITE_313}/nccl/lib/libnccl.so.2",),
    "nccl.copies": (f"2.21.5+cuda12.4 in {SITE_313}",),
}
TORCH_20 = {
    "cuda.toolkit": ("libcudart 11.8",),
    "cuda.cudart": ("11.8 from /lib/x86_64-linux-gnu/libcudart.so.11.0",),
    "cudnn.version": (f"8.5.0 from {SITE_311}/cudnn/lib/libcudnn.so.8",),
    "nccl.version": (f"2.14.3 from {SITE_311}/nccl/lib/libnccl.so.2",),
    "torch.version": ("2.0.1+cu117 from",),
    "torch.cuda-build": ("CUDA 11.7, beside the image's 11.8.0",),
    "torch.nccl": ("NCCL 2.14.3",),
    "hvd.dist": ("horovod 0.28.1",),
    "hvd.build": ("mpi, nccl",),
}

MEASURED: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "debian-cu124/debian13-devel-2.22.3_debian": {**TORCH_26, **DEVEL, **DEBIANS_NCCL},
    "debian-cu124/debian13-devel-2.21.5_pypi": {**TORCH_26, **DEVEL, **WHEELS_NCCL},
    "debian-cu124/debian13-runtime-2.22.3_debian": {**TORCH_26, **RUNTIME, **DEBIANS_NCCL},
    "debian-cu124/debian13-runtime-2.21.5_pypi": {**TORCH_26, **RUNTIME, **WHEELS_NCCL},
    "debian-cu118/debian12-runtime": TORCH_20,
}
"""Cell -> check -> what it has to have measured, each by the library's own word."""


def imagegen(state: Path, *arguments: str) -> Any:
    """The result of a command that has to succeed, with a journal of its own."""
    environ = {**os.environ, "IMAGEGEN_STATE": str(state)}
    command = [str(SCRIPT), *arguments, "--format", "json"]
    ended = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout[-4000:] + ended.stderr[-4000:]
    return json.loads(ended.stdout.splitlines()[-1])


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("cell", MEASURED)
def test_an_image_is_built_and_every_version_measured(cell: str, tmp_path: Path) -> None:
    matrix, _, name = cell.partition("/")
    (built,) = imagegen(tmp_path, "build", "--matrix", matrix, name, "--jobs", "1")
    assert built["outcome"] in ("built", "up-to-date")
    (record,) = imagegen(tmp_path, "validate", "--static", built["image"])
    assert record["passed"]
    found = {one["id"]: one for one in record["report"]["checks"]}
    for check, words in MEASURED[cell].items():
        assert found[check]["outcome"] in ("passed", "warned"), found[check]
        missing = [word for word in words if word not in found[check]["measured"]]
        assert missing == [], found[check]["measured"]
