"""Test that checks that cannot fail report true facts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from unit import conftest
from unit.validate import nodes, trees
from unit.validate.gpu_machines import LIB_DIR, Machine, write
from validate.check import PASSED
from validate.fixtures import Measure, Situation
from validate.suites import test_gpu, test_ssh

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("asked", "there", "measured"),
    [
        ("", "", "none"),
        ("", f"{LIB_DIR}/libnccl-tuner.so", "{root}/{there}"),
        ("ofi", f"{LIB_DIR}/libnccl-tuner-ofi.so", "{root}/{there}"),
        ("libmine.so", f"{LIB_DIR}/libmine.so", "{root}/{there}"),
        ("ofi", f"{LIB_DIR}/libnccl-tuner.so", "none: ofi is not found"),
        ("/opt/ofi/libtuner.so", "/opt/ofi/libtuner.so", "{root}/{there}"),
        (
            "/opt/ofi/libtuner.so",
            f"{LIB_DIR}/libtuner.so",
            "none: /opt/ofi/libtuner.so is not found",
        ),
    ],
)
def test_the_tuner_that_nccl_would_load(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, asked: str, there: str, measured: str
) -> None:
    machine.promise("nccl", "2.21.5")
    if asked:
        monkeypatch.setenv("NCCL_TUNER_PLUGIN", asked)
    if there:
        write(machine.root, there)
    one = machine.findings("nccl", static=True)["plugin.tuner"]
    said = measured.format(root=machine.root, there=there.lstrip("/"))
    assert (one.outcome, one.measured) == (PASSED, said)


@pytest.mark.parametrize(
    ("text", "measured"),
    [
        ("echo 'GPU0 X NV12'", "GPU0 X NV12"),
        (
            "echo no driver; exit 9",
            "`nvidia-smi` ended with exit code 9: no driver",
        ),
    ],
)
def test_the_topology_is_what_nvidia_smi_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, measured: str
) -> None:
    program = write(tmp_path, "bin/nvidia-smi", f'#!/bin/sh\n[ "$*" = "topo -m" ] && {text}\n')
    program.chmod(0o755)
    monkeypatch.setattr(conftest, "HARMLESS", (*conftest.HARMLESS, str(program)))
    env = {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    seen = Measure()
    test_gpu.test_topo(Situation(trees.expected(tmp_path), env, "/", {}), seen)
    assert seen.text == measured


def test_a_device_that_does_not_say_its_numa_node(machine: Machine) -> None:
    machine.promise("rdma", "44.0")
    (first, *_) = nodes.h100_infiniband(machine.root)
    (machine.root / f"{first.top}/device/numa_node".lstrip("/")).unlink()
    one = machine.findings("rdma")["rdma.numa"]
    assert one.measured.startswith("mlx5_0 node ?, mlx5_1 node 0, ")


@pytest.mark.parametrize(
    ("server", "measured"),
    [
        ({"maxstartups": "10:30:100"}, "10:30:100 (start:rate:full)"),
        ({}, "unknown: sshd does not tell its settings"),
    ],
)
def test_how_many_sessions_may_begin_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, server: dict[str, str], measured: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(test_ssh, "server_settings", lambda _: [("127.0.0.1", server)])
    seen = Measure()
    test_ssh.test_maxstartups(Situation(trees.expected(tmp_path), {}, str(tmp_path), {}), seen)
    assert seen.text == measured
