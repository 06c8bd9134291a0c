"""Test the release of OFED: MLNX_OFED reports it itself, for DOCA the package has it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from testinfra.modules.systeminfo import SystemInfo

from unit import conftest
from unit.validate.gpu_machines import Machine, write
from validate.check import FAILED, PASSED, SKIPPED

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Make an image whose verbs libraries load, and whose own programs come first on PATH."""
    one = Machine(tmp_path, monkeypatch)
    for name in ("libibverbs.so.1", "librdmacm.so.1"):
        one.lib(name)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    return one


def promise(machine: Machine, variant: str, version: str) -> None:
    machine.components["rdma"] = {"version": version, "variant": variant, "facts": {}}


def program(machine: Machine, monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    path = write(machine.root, f"bin/{name}", f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    monkeypatch.setattr(conftest, "HARMLESS", (*conftest.HARMLESS, str(path)))


@pytest.mark.parametrize(
    ("promised", "text", "outcome", "measured"),
    [
        (
            "5.4-3.1.0.0",
            "echo MLNX_OFED_LINUX-5.4-3.1.0.0:",
            PASSED,
            "MLNX_OFED_LINUX-5.4-3.1.0.0",
        ),
        ("23.10", "echo MLNX_OFED_LINUX-23.10-2.1.3.1:", PASSED, "MLNX_OFED_LINUX-23.10-2.1.3.1"),
        (
            "5.4-3.1.0.0",
            "echo MLNX_OFED_LINUX-5.8-1.0.1.1:",
            FAILED,
            "MLNX_OFED_LINUX-5.8-1.0.1.1, the recipe says 5.4-3.1.0.0",
        ),
        (
            "5.4-3.1.0.0",
            "echo MLNX_OFED_LINUX-5.4-3.1.0.01:",
            FAILED,
            "MLNX_OFED_LINUX-5.4-3.1.0.01, the recipe says 5.4-3.1.0.0",
        ),
        (
            "5.8-1.0.1.1",
            "echo no table >&2; exit 2",
            FAILED,
            "`ofed_info` ended with exit code 2: no table, the recipe says 5.8-1.0.1.1",
        ),
    ],
)
def test_another_mlnx_ofed_fails(
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    promised: str,
    text: str,
    outcome: str,
    measured: str,
) -> None:
    promise(machine, "mlnx-ofed", promised)
    program(machine, monkeypatch, "ofed_info", text)
    one = machine.findings("rdma", static=True)["rdma.ofed"]
    assert (one.outcome, one.measured) == (outcome, measured)


def test_an_image_without_ofed_s_own_programs_fails(machine: Machine) -> None:
    promise(machine, "mlnx-ofed", "5.4-3.1.0.0")
    one = machine.findings("rdma", static=True)["rdma.ofed"]
    assert (one.outcome, one.measured) == (FAILED, "there is no ofed_info")
    assert (one.cause, one.remedy) == (
        "the packages of OFED are not in the image",
        "imagegen build",
    )


@pytest.mark.parametrize(
    ("promised", "there", "outcome", "measured"),
    [
        ("3.1", "3.1.0-091513", PASSED, "doca-ofed-userspace 3.1.0-091513"),
        (
            "3.1",
            "3.10.0-05",
            FAILED,
            "doca-ofed-userspace 3.10.0-05, the recipe says 3.1",
        ),
        ("3.1", "", FAILED, "doca-ofed-userspace is not there, the recipe says 3.1"),
    ],
)
def test_another_doca_fails(
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    promised: str,
    there: str,
    outcome: str,
    measured: str,
) -> None:
    # The distribution of the image, not of the machine that runs the tests.
    monkeypatch.setattr(SystemInfo, "distribution", "ubuntu")
    promise(machine, "doca", promised)
    said = f"echo install ok installed {there}" if there else "exit 1"
    program(machine, monkeypatch, "dpkg-query", said)
    one = machine.findings("rdma", static=True)["rdma.ofed"]
    assert (one.outcome, one.measured) == (outcome, measured)


def test_the_distribution_s_stack_is_no_ofed(machine: Machine) -> None:
    promise(machine, "rdma-core", "44.0")
    one = machine.findings("rdma", static=True)["rdma.ofed"]
    assert (one.outcome, one.reason) == (SKIPPED, "not-in-recipe")
