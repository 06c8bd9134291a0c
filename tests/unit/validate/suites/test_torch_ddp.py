"""Test the checks of process groups with a PyTorch and a torchrun that are made up."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from unit.validate.gpu_machines import Machine, write
from validate.check import FAILED, PASSED, SKIPPED
from validate.probes import process_group

if TYPE_CHECKING:
    from pathlib import Path

TORCH = """
__version__ = "{version}"
class version:
    cuda = None
class _C:
    _GLIBCXX_USE_CXX11_ABI = True
def ones(_):
    return 1
"""
DISTRIBUTED = """
import os
def is_available():
    return {available}
def init_process_group(*_, **__):
    {init}
def get_rank():
    return int(os.environ["RANK"])
def get_world_size():
    return int(os.environ["WORLD_SIZE"])
def all_reduce(_):
    pass
barrier = destroy_process_group = lambda: None
"""
TORCHRUN = """
import os
if any(name in os.environ for name in ("PET_NNODES", "WORLD_SIZE", "MASTER_ADDR")):
    raise SystemExit("it waits for the other machines of a job")
import torch
for rank in range(2):
    print("ddp rank", rank, "of 2 sum", {sum}, "torch", {file})
{end}
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    one = Machine(tmp_path, monkeypatch)
    monkeypatch.setattr(process_group, "TORCHRUN", (sys.executable, str(tmp_path / "torchrun")))
    torch(one)
    torchrun(one)
    return one


def torch(
    machine: Machine, version: str = "2.6.0", init: str = "pass", available: str = "True"
) -> None:
    machine.promise("torch", version)
    write(machine.site, "torch/__init__.py", TORCH.format(version=version))
    text = DISTRIBUTED.format(init=init, available=available)
    write(machine.site, "torch/distributed.py", text)


def torchrun(machine: Machine, total: int = 3, file: str = "torch.__file__", end: str = "") -> None:
    text = TORCHRUN.format(sum=total, file=file, end=end)
    write(machine.root, "torchrun", text)


def outcomes(machine: Machine) -> tuple[str, str]:
    found = machine.findings("torch")
    return found["ddp.init"].outcome, found["ddp.torchrun"].outcome


def test_ranks_that_meet_pass_both_checks(machine: Machine) -> None:
    found = machine.findings("torch")
    assert outcomes(machine) == (PASSED, PASSED)
    assert found["ddp.torchrun"].measured == "rank 0 of 2: sum 3; rank 1 of 2: sum 3"


def test_a_static_run_starts_no_ranks(machine: Machine) -> None:
    assert not {one for one in machine.findings("torch", static=True) if one.startswith("ddp.")}


def test_the_job_that_the_container_belongs_to_is_left_alone(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"PET_NNODES": "2", "WORLD_SIZE": "16", "MASTER_ADDR": "worker-0"}.items():
        monkeypatch.setenv(name, value)
    assert outcomes(machine) == (PASSED, PASSED)


def test_a_torch_without_libuv_fails_where_it_asks_for_it(machine: Machine) -> None:
    end = (
        "raise RuntimeError('use_libuv was requested but PyTorch was build without libuv support')"
    )
    torchrun(machine, end=end)
    one = machine.findings("torch")["ddp.torchrun"]
    assert (one.outcome, one.remedy.split("   #")[0]) == (FAILED, "imagegen build")
    assert one.measured.startswith("RuntimeError: use_libuv was requested")
    torch(machine, init=end)
    found = machine.findings("torch")
    assert found["ddp.init"].outcome == FAILED
    assert found["ddp.init"].remedy.startswith("export USE_LIBUV=0   # ")
    assert (found["ddp.torchrun"].outcome, found["ddp.torchrun"].reason) == (SKIPPED, "blocked-by")


def test_the_error_is_that_of_the_rank_not_that_of_the_launcher(machine: Machine) -> None:
    end = """
import sys
print("[rank0]: Traceback (most recent call last):", file=sys.stderr)
print("[rank0]: AttributeError: 'NoneType' object has no attribute 'get'", file=sys.stderr)
print("torch.distributed.elastic.multiprocessing.errors.ChildFailedError: x", file=sys.stderr)
sys.exit(1)
"""
    torchrun(machine, end=end)
    one = machine.findings("torch")["ddp.torchrun"]
    assert one.measured == "AttributeError: 'NoneType' object has no attribute 'get'"
    assert "Python 3.11" in one.cause
    assert one.remedy.startswith("sed -i ")


def test_a_wrong_sum_and_another_torch_fail(machine: Machine) -> None:
    torchrun(machine, total=2)
    one = machine.findings("torch")["ddp.torchrun"]
    assert (one.outcome, one.measured) == (FAILED, "rank 0 of 2: sum 2; rank 1 of 2: sum 2")
    torchrun(machine, file="'/opt/env/torch/__init__.py'")
    one = machine.findings("torch")["ddp.torchrun"]
    assert (one.outcome, one.measured) == (FAILED, "its ranks import /opt/env/torch/__init__.py")


def test_an_interface_that_is_not_there_is_named(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "eth7")
    end = "raise RuntimeError('ifa != nullptr. Unable to find address for: eth7')"
    torchrun(machine, end=end)
    torch(machine, init=end)
    one = machine.findings("torch")["ddp.init"]
    assert one.cause.startswith("GLOO_SOCKET_IFNAME=eth7 names no interface")


def test_a_torchrun_that_is_gone_is_missed_from_1_10_on(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_group, "TORCHRUN", ("torchrun",))
    found = machine.findings("torch")
    assert (found["ddp.init"].outcome, found["ddp.init"].measured) == (PASSED, "rank 0 of 1: sum 1")
    assert "torchrun: No such file" in found["ddp.torchrun"].measured
    torch(machine, "1.9.1+cu111")
    assert outcomes(machine) == (PASSED, SKIPPED)


def test_a_torch_without_distributed_fails(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_group, "TORCHRUN", ("torchrun",))
    torch(machine, available="False")
    one = machine.findings("torch")["ddp.init"]
    assert (one.outcome, one.cause) == (
        FAILED,
        "this build of PyTorch leaves torch.distributed out",
    )
