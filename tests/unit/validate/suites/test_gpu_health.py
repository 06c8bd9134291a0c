"""Test the health of GPUs on made-up machines: each fault is named, with what it leads to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unit.validate import nodes
from unit.validate.gpu_machines import Machine, nvml_library, write
from unit.validate.suites.test_gpu import driven, machine, outcomes
from validate.check import FAILED, PASSED, SKIPPED, WARNED
from validate.probes import gpu_log

if TYPE_CHECKING:
    from pathlib import Path

    from validate.check import CheckResult

__all__ = ["machine"]  # the fixture

XID = "6,1200,{at},-;NVRM: Xid (PCI:0000:11:00): {code}, pid='<unknown>', name=<unknown>, more"
HEALTH = ("gpu.ecc", "gpu.nvlink", "gpu.pcie", "gpu.clocks", "gpu.busy", "gpu.health")


def found_with(machine: Machine, **ill: int) -> dict[str, CheckResult]:
    nodes.a100_roce(machine.root)
    ecc = ill.pop("ecc", 0)
    driven(machine, nvml=nvml_library(ecc=ecc, ill=ill))
    return machine.findings("gpu")


@pytest.mark.parametrize(
    ("ill", "check", "outcome", "words", "action"),
    [
        ({"ecc": 3}, "gpu.ecc", FAILED, "GPU 1: 3 uncorrected ECC errors", "drain"),
        ({"pending": 1}, "gpu.ecc", FAILED, "GPU 1: a row remapping is pending", "drain"),
        ({"failed": 1}, "gpu.ecc", FAILED, "GPU 1: a row remapping failed", "drain"),
        ({"retired": 1}, "gpu.ecc", FAILED, "GPU 1: a retirement of a page is pending", "drain"),
        ({"up": 11}, "gpu.nvlink", FAILED, "GPU 1: 11 of 12 NVLinks are up", "drain"),
        ({"up": 0}, "gpu.nvlink", FAILED, "GPU 1: 0 of 12 NVLinks are up", "drain"),
        ({"fabric": 2}, "gpu.nvlink", FAILED,
         "GPU 1: its registration with the fabric is in progress", "drain"),
        ({"link": 7}, "gpu.nvlink", WARNED,
         "errors of NVLinks since the driver loaded: GPU 1 7", "ask"),
        ({"width": 8}, "gpu.pcie", WARNED, "GPU 1: PCIe x8 of x16", "drain"),
        ({"generation": 1}, "gpu.pcie", WARNED, "GPU 1: PCIe generation 1 of 4", "drain"),
        ({"slow": 0x40}, "gpu.clocks", WARNED, "GPU 1: thermal slowdown", "drain"),
        ({"slow": 0x88}, "gpu.clocks", WARNED,
         "GPU 1: hardware slowdown, power brake", "drain"),
        ({"processes": 2}, "gpu.busy", FAILED,
         "GPU 1: 2 processes compute on it, 1 of 40960 MiB are in use", "drain"),
        ({"used": 8192}, "gpu.busy", FAILED, "GPU 1: 8192 of 40960 MiB are in use", "drain"),
        ({"mode": 2}, "gpu.health", WARNED, "GPU 1: compute mode is prohibited", "drain"),
    ],
)  # fmt: skip
def test_a_fault_of_one_gpu_is_named(
    machine: Machine, ill: dict[str, int], check: str, outcome: str, words: str, action: str
) -> None:
    found = found_with(machine, **ill)
    one = found[check]
    assert (one.outcome, one.measured, one.action) == (outcome, words, action)
    assert one.cause
    others = {name: state for name, state in outcomes(found).items() if name in HEALTH}
    assert set(others.values()) - {outcome} <= {PASSED}
    assert [name for name, state in others.items() if state != PASSED] == [check]


@pytest.mark.parametrize(
    "ill", [{}, {"slow": 0x4}, {"slow": 0x1}, {"generation": 1, "pstate": 8}, {"mode": 3}]
)
def test_what_a_well_gpu_does_is_no_fault(machine: Machine, ill: dict[str, int]) -> None:
    found = found_with(machine, **ill)
    assert {outcomes(found)[name] for name in HEALTH} == {PASSED}


def test_cards_whose_bridge_takes_some_links_are_well(machine: Machine) -> None:
    nodes.gpus(machine.root, 2, nodes.H100, "550.54.14")
    nodes.pass_gpus(machine.root, 2)
    half = nvml_library(count=2, links=18)
    half = half.replace("link < (d == (void *)2 ? 18 : 18)", "link < 12")
    driven(machine, nvml=half)
    found = machine.findings("gpu")
    assert found["gpu.nvlink"].measured == "NVLinks up 12, 12"
    assert found["gpu.nvlink"].outcome == PASSED


def log(machine: Machine, *lines: str, uptime: int = 100_000) -> None:
    write(machine.root, "/dev/kmsg", "\n".join(lines) + "\n")
    write(machine.root, "/proc/uptime", f"{uptime}.00 1.00\n")


def test_an_error_of_the_hardware_in_the_kernel_s_log_drains(machine: Machine) -> None:
    log(machine, "6,1,5,-;booted", XID.format(at=99_400_000_000, code=79))
    one = found_with(machine)["gpu.xid"]
    assert (one.outcome, one.action) == (FAILED, "drain")
    assert one.measured == "GPU 0000:11:00: XID 79 it fell off the bus 10 min ago"


@pytest.mark.parametrize(
    ("code", "at", "uptime"), [(31, 99_000, 100_000), (79, 1_000, 100_000), (63, 99_000, 100_000)]
)
def test_errors_of_programs_and_old_ones_are_counted_only(
    machine: Machine, code: int, at: int, uptime: int
) -> None:
    log(machine, XID.format(at=at * 1_000_000, code=code), uptime=uptime)
    one = found_with(machine)["gpu.xid"]
    assert (one.outcome, one.measured) == (
        PASSED, "1 XID errors, none of the hardware within a day",
    )  # fmt: skip


def test_a_log_that_nobody_may_read_here_is_said(machine: Machine) -> None:
    one = found_with(machine)["gpu.xid"]
    assert (one.outcome, one.reason) == (SKIPPED, "needs-root")


@pytest.mark.parametrize("prefix", ["[ 1234.567890] ", "<4>[ 1234.567890] "])
def test_lines_of_dmesg_are_read_too(tmp_path: Path, prefix: str) -> None:
    write(tmp_path, "/proc/uptime", "1294.9 3.0\n")
    line = prefix + "NVRM: Xid (PCI:0000:3b:00): 95, pid=7"
    assert gpu_log.xids(str(tmp_path), [line, "NVRM: loading"]) == [
        gpu_log.Xid("0000:3b:00", 95, 60)
    ]


def gb200(machine: Machine, *channels: str, served: bool = True) -> CheckResult:
    nodes.gpus(machine.root, 4, "0x2941", "580.65.06")
    nodes.pass_gpus(machine.root, 4)
    driven(machine, nvml=nvml_library(count=4, links=18, name="NVIDIA GB200"))
    write(
        machine.root, "/proc/devices", "195 nvidia\n" + "234 nvidia-caps-imex-channels\n" * served
    )
    for name in channels:
        write(machine.root, f"/dev/nvidia-caps-imex-channels/{name}")
    return machine.findings("gpu")["gpu.imex"]


def test_a_gb200_without_a_channel_is_started_with_one(machine: Machine) -> None:
    one = gb200(machine)
    assert (one.outcome, one.action) == (FAILED, "relaunch")
    assert "NVIDIA_IMEX_CHANNELS=0" in one.remedy


def test_a_gb200_whose_driver_serves_no_channel_is_drained(machine: Machine) -> None:
    one = gb200(machine, served=False)
    assert (one.outcome, one.action) == (FAILED, "drain")


def test_a_gb200_with_a_channel_is_well_and_an_a100_needs_none(machine: Machine) -> None:
    assert gb200(machine, "channel0").outcome == PASSED
    assert (
        found_with(machine)["gpu.imex"].measured == "the NVLink of NVIDIA A100 stays in the machine"
    )


CDI = """\
cdiVersion: 0.5.0
kind: nvidia.com/gpu
containerEdits:
  mounts:
  - hostPath: /usr/lib/x86_64-linux-gnu/libcuda.so.{0}
"""


def test_a_cdi_specification_of_an_older_driver_is_written_anew(machine: Machine) -> None:
    write(machine.root, "/etc/cdi/nvidia.yaml", CDI.format("460.27.03"))
    one = found_with(machine)["gpu.toolkit"]
    assert (one.outcome, one.action) == (WARNED, "drain")
    assert one.measured == "/etc/cdi/nvidia.yaml is for driver 460.27.03, the kernel has 470.57.02"
    assert one.remedy == "nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"


def test_the_mode_and_the_release_of_the_toolkit_are_shown(machine: Machine) -> None:
    write(machine.root, "/var/run/cdi/nvidia.yaml", CDI.format("470.57.02"))
    write(machine.root, "/etc/nvidia-container-runtime/config.toml", '[x]\nmode = "cdi"\n')
    package = "Package: nvidia-container-toolkit\nVersion: 1.17.4-1\n"
    write(machine.root, "/var/lib/dpkg/status", package)
    one = found_with(machine)["gpu.toolkit"]
    assert (one.outcome, one.measured) == (
        PASSED, "mode cdi, toolkit 1.17.4, /var/run/cdi/nvidia.yaml",
    )  # fmt: skip


def test_a_release_of_the_toolkit_that_is_known_to_fail(machine: Machine) -> None:
    write(machine.root, "/var/lib/dpkg/status",
          "Package: nvidia-container-toolkit\nVersion: 1.19.1-1\n")  # fmt: skip
    one = found_with(machine)["gpu.toolkit"]
    assert one.measured.startswith("toolkit 1.19.1: CUDA does not start in containers")
    assert (one.outcome, one.action) == (WARNED, "drain")


def test_in_cdi_mode_a_container_shows_it(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NVIDIA_VISIBLE_DEVICES", "void")
    assert found_with(machine)["gpu.toolkit"].measured == "mode cdi"
