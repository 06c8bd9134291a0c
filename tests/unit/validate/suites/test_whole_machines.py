"""Test whole machines with all suites of their hardware against the verdict of a person."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from unit.validate import nodes
from unit.validate.gpu_machines import LIB_DIR, Machine, driver_library, runtime_library, write
from unit.validate.suites.test_gpu import driven
from unit.validate.suites.test_harp import PLUGIN, nccl, plugin
from unit.validate.suites.test_rdma_ports import stack
from validate import cli
from validate.probes import limits

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Make = Callable[[Path], object]

RDMA = {
    "version": "44.0",
    "variant": "rdma-core",
    "facts": {"pabi": "34", "providers": ["mlx5"], "tools": []},
}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Make an image with CUDA 11.3 and NCCL 2.9.9, and a launch that raised the limits."""
    monkeypatch.setattr(limits, "soft_limit", lambda kind: 1 << 26 if kind == "stack" else -1)
    monkeypatch.setattr(limits, "shm_bytes", lambda _: 32 << 30)
    for name in ("NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "K_MPI_JOB_ROLE"):
        monkeypatch.delenv(name, raising=False)
    one = Machine(tmp_path, monkeypatch)
    monkeypatch.setenv("HOME", "/home")
    (tmp_path / "home").mkdir()
    one.device = "gpu"
    one.promise("cuda", "11.3.109", flavour="runtime", cudart="11.0")
    one.promise("nccl", "2.9.9", cuda="11.3")
    one.lib("libcudart.so.11.0", runtime_library(11030))
    one.lib("libnccl.so.2", nccl("2.9.9", 20909, (4,)), "-ldl")
    return one


def verdict(machine: Machine, *suites: str) -> dict[str, list[str]]:
    """Return the exit code, and the checks that failed and warned by the command line's report."""
    recipe = {
        "schema": 1,
        "device": "gpu",
        "profile": "harp" if "harp" in suites else "rdma",
        "os": {"ID": "ubuntu", "lib_dir": LIB_DIR},
        "components": machine.components,
        "suites": list(suites),
    }
    path = write(machine.root, "image.json", json.dumps(recipe))
    report = machine.root / "report.json"
    words = ["--root", str(machine.root), "--expect", str(path), "--json", str(report)]
    code = cli.main([*words, "--only", ",".join(("gpu", "cuda", "limits", *suites))])
    checks = json.loads(report.read_text())["checks"]
    found = {
        kind: [c["id"] for c in checks if c["outcome"] == kind] for kind in ("failed", "error")
    }
    return {
        "code": [str(code)],
        **found,
        "warned": [c["id"] for c in checks if c["outcome"] == "warned"],
    }


@pytest.mark.parametrize(
    ("make", "failed", "warned"),
    [
        # NCCL 2.9.9 uses row 0 if no setting names another one.
        (nodes.a100_roce, [], ["rdma.gid"]),
        # NCCL 2.9.9 looks for nv_mem, which nvidia_peermem does not make.
        (nodes.h100_infiniband, [], ["rdma.gdr"]),
        (nodes.port_down, [], ["rdma.port", "rdma.gdr"]),
        (nodes.all_ports_down, ["rdma.port"], ["rdma.gdr"]),
        (nodes.pod_without_devices, ["gpu.nodes", "rdma.uverbs"], []),
    ],
)
def test_a_node_with_rdma(
    machine: Machine, make: Make, failed: list[str], warned: list[str]
) -> None:
    machine.components["rdma"] = RDMA
    stack(machine, 8)
    make(machine.root)
    if make is not nodes.pod_without_devices:
        driven(machine, driver=driver_library(serves=11040))
    assert verdict(machine, "rdma") == {
        "code": ["1" if failed else "0"],
        "failed": failed,
        "error": [],
        "warned": warned,
    }


def test_a_cloud_machine_with_harp_is_well(machine: Machine) -> None:
    machine.promise("harp", "1.3", path=PLUGIN, plugin_abi="4")
    machine.lib("libnccl-net.so", plugin(4), "-nostdlib")
    nodes.v100_harp(machine.root)
    driven(machine, driver=driver_library(serves=11040))
    found = verdict(machine, "harp")
    assert found == {"code": ["0"], "failed": [], "error": [], "warned": []}


def test_one_that_was_not_prepared_for_harp_says_so_first(machine: Machine) -> None:
    machine.promise("harp", "1.3", path=PLUGIN, plugin_abi="4")
    machine.lib("libnccl-net.so", plugin(4), "-nostdlib")
    nodes.v100_harp(machine.root)
    for path in (machine.root / "usr/local/tfabric/tools/config").iterdir():
        path.unlink()
    driven(machine, driver=driver_library(serves=11040))
    assert verdict(machine, "harp")["failed"] == ["harp.config"]
