"""Test what the launch allows: processes, control groups of both kinds, capabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unit.validate import nodes, trees
from unit.validate.gpu_machines import Machine, write
from validate.check import FAILED, PASSED, WARNED
from validate.probes import limits

if TYPE_CHECKING:
    from pathlib import Path

SOFT = {"stack": 64 << 20, "nofile": 1 << 20}
"""Limits of a launch that raised all of them; those not named are unlimited."""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    soft_limits(monkeypatch)
    monkeypatch.setattr(limits, "shm_bytes", lambda _: 32 << 30)
    return Machine(tmp_path, monkeypatch)


def soft_limits(monkeypatch: pytest.MonkeyPatch, **given: int) -> None:
    said = {**SOFT, **given}
    monkeypatch.setattr(limits, "soft_limit", lambda kind: said.get(kind, limits.UNLIMITED))


@pytest.mark.parametrize(
    ("soft", "file", "pids", "outcome", "measured"),
    [
        (-1, "pids.max", "max", PASSED, "unlimited"),
        (-1, "pids.max", "4096", PASSED, "4096"),
        (-1, "pids.max", "1024", WARNED, "1024 processes and threads, 4096 are good"),
        (-1, "pids/pids.max", "512", WARNED, "512 processes and threads, 4096 are good"),
        (2048, "pids.max", "max", WARNED, "2048 processes and threads, 4096 are good"),
        (65536, "pids.max", "1024", WARNED, "1024 processes and threads, 4096 are good"),
    ],
)
def test_few_processes_warn_whichever_limit_is_the_smaller(
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    soft: int,
    file: str,
    pids: str,
    outcome: str,
    measured: str,
) -> None:
    soft_limits(monkeypatch, nproc=soft)
    write(machine.root, f"/sys/fs/cgroup/{file}", f"{pids}\n")
    one = machine.findings("limits")["lim.nproc"]
    assert (one.outcome, one.measured) == (outcome, measured)
    if outcome == WARNED:
        assert one.remedy.startswith("docker run --pids-limit -1 --ulimit nproc=-1 ")


def test_what_the_control_group_allows_is_told(machine: Machine) -> None:
    assert machine.findings("limits")["lim.cgroup"].measured == "no limit"
    for file, said in {
        "cpu.max": "800000 100000",
        "memory.max": "max",
        "cpuset.cpus.effective": "0-7",
        "pids.max": "5000",
    }.items():
        write(machine.root, f"/sys/fs/cgroup/{file}", f"{said}\n")
    one = machine.findings("limits")["lim.cgroup"]
    assert one.measured == "cpus 800000 100000, cpuset 0-7, pids 5000"


@pytest.mark.parametrize(
    ("bits", "measured"),
    [
        (nodes.PLAIN_CAPABILITIES, "none of note; seccomp off"),
        ("00000000a80c65fb", "IPC_LOCK, SYS_PTRACE; seccomp off"),
    ],
)
def test_capabilities_of_use_are_told(machine: Machine, bits: str, measured: str) -> None:
    nodes.capabilities(machine.root, bits)
    assert machine.findings("limits")["lim.caps"].measured == measured


@pytest.mark.parametrize(
    ("limit", "card", "outcome"),
    [(-1, True, PASSED), (65536, True, FAILED), (65536, False, WARNED)],
)
@pytest.mark.silent("E20")
def test_little_memory_to_pin_fails_only_where_there_is_a_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int, card: bool, outcome: str
) -> None:
    monkeypatch.setattr(limits, "soft_limit", lambda _: limit)
    trees.write(tmp_path, "/proc/self/status", "CapEff:\t0000000000000000\n")
    if card:
        trees.hca(tmp_path)
    found = trees.findings(tmp_path, "limits", trees.expected(tmp_path))
    assert found["lim.memlock"].outcome == outcome


@pytest.mark.parametrize(
    ("size", "device", "outcome"),
    [
        (64 << 20, "gpu", FAILED),
        (64 << 20, "cpu", WARNED),
        (1 << 30, "gpu", WARNED),
        (8 << 30, "gpu", PASSED),
    ],
)
def test_shared_memory_is_judged_by_its_size_and_the_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, device: str, outcome: str
) -> None:
    monkeypatch.setattr(limits, "shm_bytes", lambda _: size)
    components = {"validate": {"version": "0.1.0"}}
    recipe = trees.expected(tmp_path, device=device, components=components)
    assert trees.findings(tmp_path, "limits", recipe)["lim.shm"].outcome == outcome
