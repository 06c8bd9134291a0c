"""Test the gate of a job in real containers: what it leads to, and GPUs that a library makes up."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from nccl_parts import compiled
from running_image import SLEEP, said, started
from unit.validate.gpu_machines import driver_library, nvml_library

from imagegen.engine.containers.containers import Container, LaunchSpec
from validate.probes.gpu import DRIVER, NVML

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.engine.client import Engine

SECONDS = 240.0
LIB_DIR = "/usr/lib/x86_64-linux-gnu"
ENOUGH: dict[str, Any] = {"shm_bytes": 1 << 30, "ulimits": {"memlock": -1, "nofile": 1 << 20}}
NODES = ("nvidiactl", "nvidia-uvm", "nvidia0", "nvidia1")


def long(*values: object) -> Any:
    return pytest.param(*values, marks=pytest.mark.long)


def preflight(container: Container, *arguments: str) -> tuple[int, list[str], dict[str, Any]]:
    """Return the exit code, the lines of the screen, and the JSON document."""
    words = ["validate", "--preflight", "--json", "/tmp/preflight.json", *arguments]
    ended = container.exec(words, SECONDS)
    document = json.loads(container.read_file("/tmp/preflight.json"))
    return ended.code, ended.out.splitlines(), document


@pytest.mark.parametrize(
    ("cell", "launch", "action"),
    [("debian13-none", ENOUGH, "start"), ("debian12-rdma-core", {}, "relaunch")],
)
def test_the_launch_decides(
    this_engine: Engine, cpu_family: dict[str, str], cell: str, launch: dict[str, Any], action: str
) -> None:
    spec = LaunchSpec(cpu_family[cell], SLEEP, **launch)
    with started(this_engine, spec) as container:
        code, screen, document = preflight(container)
    assert (code, document["verdict"]["action"]) == (int(action != "start"), action), screen
    assert screen[-1].startswith(f"{action}: ")
    assert len(screen) <= 24
    outcomes = {one["id"]: one["outcome"] for one in document["checks"]}
    assert outcomes["torch.import"] == outcomes["torch.kernel"] == "passed"
    assert "ddp.init" not in outcomes


@pytest.mark.parametrize(
    ("ill", "action", "words"),
    [
        ({"failed": 1}, "drain", "drain: gpu.ecc: GPU 1: a row remapping failed"),
        long({}, "start", "start: "),
        long({"up": 3}, "drain", "drain: gpu.nvlink: GPU 1: 3 of 12 NVLinks are up"),
        long({"processes": 1}, "drain", "drain: gpu.busy: GPU 1: 1 processes compute on it"),
    ],
)
def test_a_gpu_that_is_ill_drains_its_host(
    this_engine: Engine,
    cpu_family: dict[str, str],
    tmp_path: Path,
    ill: dict[str, int],
    action: str,
    words: str,
) -> None:
    libraries = {NVML: nvml_library(count=2, ill=ill), DRIVER: driver_library(count=2)}
    with started(this_engine, LaunchSpec(cpu_family["debian13-none"], SLEEP)) as container:
        for name, source in libraries.items():
            container.write_file(f"{LIB_DIR}/{name}", compiled(tmp_path, name, source), 0o755)
        promised = json.loads(container.read_file("/etc/imagegen/image.json"))
        container.write_file("/tmp/gpu.json", json.dumps({**promised, "device": "gpu"}).encode())
        nodes = " ".join(f"/dev/{node}" for node in NODES)
        said(container, "sh", "-c", f"ldconfig; touch {nodes}")
        chosen = ("--only", "gpu", "--expect", "/tmp/gpu.json")
        code, screen, document = preflight(container, *chosen)
    assert (code, document["verdict"]["action"]) == (int(action != "start"), action), screen
    assert screen[-1].startswith(words)
