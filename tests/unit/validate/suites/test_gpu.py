"""Test GPUs on made-up machines: absent, present but not passed, unusable, and good."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unit.validate import nodes
from unit.validate.gpu_machines import (
    LIB_DIR,
    Machine,
    driver_library,
    nvml_library,
    runtime_library,
    write,
)
from validate.check import FAILED, PASSED, SKIPPED, WARNED
from validate.probes import gpu

if TYPE_CHECKING:
    from pathlib import Path

    from validate.check import CheckResult

ON_THE_BUS = "on the host's bus, but not here: "
MOUNTS = "".join(
    f"{number} 35 0:1 / {LIB_DIR}/{name} ro - ext4 /dev/x ro\n"
    for number, name in enumerate((gpu.DRIVER, gpu.NVML), 36)
)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.delenv("NVIDIA_VISIBLE_DEVICES", raising=False)
    monkeypatch.delenv("NVIDIA_DRIVER_CAPABILITIES", raising=False)
    one = Machine(tmp_path, monkeypatch)
    one.promise("cuda", "12.4.131", flavour="runtime", cudart="12")
    return one


def driven(machine: Machine, nvml: str = "", driver: str = "") -> None:
    """Add the libraries that the container toolkit mounts."""
    machine.lib(gpu.NVML, nvml or nvml_library())
    machine.lib(gpu.DRIVER, driver or driver_library())
    write(machine.root, "/proc/self/mountinfo", MOUNTS)


def outcomes(found: dict[str, CheckResult]) -> dict[str, str]:
    return {name: one.outcome for name, one in found.items()}


def failed(found: dict[str, CheckResult]) -> list[str]:
    return [name for name, one in found.items() if one.outcome == FAILED]


def test_a_host_without_a_gpu_rests(machine: Machine) -> None:
    found = machine.findings("gpu")
    assert {(one.outcome, one.reason) for one in found.values()} == {(SKIPPED, "no-gpu-hw")}


def test_an_image_without_cuda_says_that_it_is_for_cpus(machine: Machine) -> None:
    del machine.components["cuda"]
    nodes.a100_roce(machine.root)
    found = machine.findings("gpu")
    assert {one.reason for one in found.values()} == {"not-in-recipe"}
    assert found["gpu.nodes"].measured == "the image is for cpu"


def test_eight_a100_that_were_passed_are_well(machine: Machine) -> None:
    nodes.a100_roce(machine.root)
    driven(machine)
    found = machine.findings("gpu")
    assert {name for name, one in outcomes(found).items() if one != PASSED} == {
        *("gpu.xid", "gpu.imex"),  # no log of the kernel, and no NVLink to other machines
    }
    assert found["gpu.nodes"].measured == "8 GPUs, 8 nodes, driver 470.57.02"
    assert found["gpu.nvml"].measured == "8 x NVIDIA A100, driver 550.54.14"
    assert found["gpu.fabricmgr"].measured == "6 NVSwitches, cuInit 0"
    assert found["gpu.topo"].measured.startswith("0000:10:00.0 node 0, ")


def test_v100_of_a_cloud_have_no_fabric(machine: Machine) -> None:
    nodes.v100_harp(machine.root)
    driven(machine)
    found = machine.findings("gpu")
    assert (found["gpu.fabricmgr"].outcome, found["gpu.fabricmgr"].reason) == (
        SKIPPED,
        "not-applicable",
    )
    rest = ("gpu.fabricmgr", "gpu.xid", "gpu.imex")
    others = {name: one for name, one in outcomes(found).items() if name not in rest}
    assert set(others.values()) == {PASSED}


@pytest.mark.silent("E10")
def test_a_pod_without_devices_fails_once_with_the_line_that_passes_them(machine: Machine) -> None:
    nodes.pod_without_devices(machine.root)
    found = machine.findings("gpu")
    assert failed(found) == ["gpu.nodes"]
    one = found["gpu.nodes"]
    assert one.measured == "8 GPUs and driver 470.57.02 on the host, none of them in /dev"
    assert one.cause.endswith("without its GPUs: NVIDIA_VISIBLE_DEVICES is not set")
    assert "--gpus all" in one.remedy
    assert "nvidia.com/gpu" in one.remedy
    assert {found[name].reason for name in ("gpu.nvml", "gpu.count")} == {"blocked-by"}


def test_a_host_without_a_driver_is_told_apart(machine: Machine) -> None:
    nodes.pod_without_devices(machine.root)
    (machine.root / "proc/driver/nvidia/version").unlink()
    one = machine.findings("gpu")["gpu.nodes"]
    assert (one.outcome, one.measured, one.cause) == (
        FAILED,
        "8 GPUs on the host's PCI bus, no driver in its kernel, nothing in /dev",
        "the host has no NVIDIA driver loaded",
    )


def test_the_launcher_of_a_job_needs_no_device(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("K_MPI_JOB_ROLE", "launcher")
    nodes.pod_without_devices(machine.root)
    assert {one.reason for one in machine.findings("gpu").values()} == {"not-applicable"}
    found = machine.findings("cuda")
    assert found["cuda.init"].reason == "not-applicable"
    assert failed(found) == ["cuda.cudart"]  # this machine has none


def test_devices_that_cdi_brought_are_here_whatever_the_variable_says(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NVIDIA_VISIBLE_DEVICES", "void")
    nodes.pod_without_devices(machine.root)
    assert machine.findings("gpu")["gpu.env"].outcome == WARNED
    nodes.pass_gpus(machine.root, 8)
    assert machine.findings("gpu")["gpu.env"].outcome == PASSED


def test_a_control_node_alone_is_no_gpu_and_some_of_them_warn(machine: Machine) -> None:
    nodes.a100_roce(machine.root)
    driven(machine)
    for number in range(4, 8):
        (machine.root / f"dev/nvidia{number}").unlink()
    one = machine.findings("gpu")["gpu.nodes"]
    assert (one.outcome, one.measured) == (WARNED, "4 of the host's 8 GPUs were passed")
    for number in range(4):
        (machine.root / f"dev/nvidia{number}").unlink()
    one = machine.findings("gpu")["gpu.nodes"]
    assert (one.outcome, one.measured) == (FAILED, "/dev/nvidiactl alone: no GPU was passed")
    write(machine.root, "/dev/nvidia0")
    (machine.root / "dev/nvidiactl").unlink()
    assert machine.findings("gpu")["gpu.nodes"].measured == "/dev/nvidia0 without /dev/nvidiactl"


def test_nodes_without_the_libraries_of_the_driver_fail(machine: Machine) -> None:
    nodes.a100_roce(machine.root)
    found = machine.findings("gpu")
    assert found["gpu.nvml"].measured == "libnvidia-ml.so.1 is not in the container"


@pytest.mark.parametrize("code", sorted(gpu.NVML_CODES))
def test_each_known_code_of_nvml_has_its_cause(machine: Machine, code: int) -> None:
    nodes.a100_roce(machine.root)
    driven(machine, nvml=nvml_library(init=code))
    one = machine.findings("gpu")["gpu.nvml"]
    assert (one.outcome, one.measured) == (FAILED, f"NVML returned {code}")
    assert (one.cause, one.remedy) == gpu.NVML_CODES[code]


@pytest.mark.silent("E12")
def test_a_fabric_that_is_not_set_up_is_the_one_failure(machine: Machine) -> None:
    nodes.h100_infiniband(machine.root)
    driven(machine, driver=driver_library(init=802))
    found = machine.findings("gpu")
    assert failed(found) == ["gpu.fabricmgr"]
    assert (found["gpu.count"].reason, found["gpu.count"].measured) == (
        "blocked-by",
        "gpu.fabricmgr",
    )
    assert "nvidia-fabricmanager" in found["gpu.fabricmgr"].remedy


def test_fewer_gpus_for_cuda_fail_or_warn_where_a_variable_hides_them(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes.a100_roce(machine.root)
    driven(machine, driver=driver_library(count=4))
    assert failed(machine.findings("gpu")) == ["gpu.count"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3")
    one = machine.findings("gpu")["gpu.count"]
    assert (one.outcome, one.measured) == (
        WARNED,
        "NVML 8, CUDA 4, CUDA_VISIBLE_DEVICES=0,1,2,3",
    )


@pytest.mark.parametrize(
    ("wanted", "passed", "measured", "remedy"),
    [
        (8, 8, "NVML 8, CUDA 8", ""),
        (
            8,
            6,
            f"8 GPUs are required, NVML counts 6; {ON_THE_BUS}0000:16:00.0, 0000:17:00.0",
            "docker run --gpus all IMAGE",
        ),
        (4, 8, "4 GPUs are required, NVML counts 8", "docker run --gpus 4 IMAGE"),
    ],
)
def test_as_many_gpus_as_the_user_requires(
    machine: Machine, wanted: int, passed: int, measured: str, remedy: str
) -> None:
    nodes.a100_roce(machine.root)
    driven(machine, nvml=nvml_library(count=passed), driver=driver_library(count=passed))
    machine.gpus = wanted
    one = machine.findings("gpu")["gpu.count"]
    assert (one.outcome, one.measured) == (FAILED if remedy else PASSED, measured)
    assert one.remedy == remedy


def test_a_gpu_that_fell_off_the_bus_is_missed_where_a_number_is_required(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes.gpus(machine.root, 2, nodes.A100, "550.54.14")
    nodes.pass_gpus(machine.root, 2)
    driven(machine, nvml=nvml_library(count=2), driver=driver_library(count=2))
    machine.gpus = 3
    one = machine.findings("gpu")["gpu.count"]
    bus = "the host's bus has 2: 0000:10:00.0, 0000:11:00.0"
    assert (one.outcome, one.measured) == (FAILED, f"3 GPUs are required, NVML counts 2, {bus}")
    assert (one.kind, "dmesg" in one.look) == ("host", True)
    # If a number is required, GPUs hidden by a variable are a failure, not a warning.
    machine.gpus = 2
    driven(machine, nvml=nvml_library(count=2), driver=driver_library(count=1))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert machine.findings("gpu")["gpu.count"].outcome == FAILED


def test_pairs_that_cannot_copy_and_errors_of_memory_warn(machine: Machine) -> None:
    nodes.a100_roce(machine.root)
    driven(machine, nvml=nvml_library(ecc=3), driver=driver_library(apart=2))
    found = machine.findings("gpu")
    assert (outcomes(found)["gpu.p2p"], outcomes(found)["gpu.ecc"]) == (WARNED, FAILED)
    assert found["gpu.p2p"].measured.startswith("14 of 56 pairs cannot: 0 to 1, 1 to 0")
    assert found["gpu.ecc"].measured == "GPU 1: 3 uncorrected ECC errors"


@pytest.mark.parametrize(
    ("name", "value", "outcome"),
    [
        ("NVIDIA_VISIBLE_DEVICES", "void", PASSED),
        ("NVIDIA_VISIBLE_DEVICES", "all", PASSED),
        ("NVIDIA_DRIVER_CAPABILITIES", "utility", WARNED),
        ("NVIDIA_DRIVER_CAPABILITIES", "compute,utility", PASSED),
        ("NVIDIA_DRIVER_CAPABILITIES", "all", PASSED),
    ],
)
def test_what_the_toolkit_is_asked_for(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, name: str, value: str, outcome: str
) -> None:
    nodes.a100_roce(machine.root)
    driven(machine)
    monkeypatch.setenv(name, value)
    assert machine.findings("gpu")["gpu.env"].outcome == outcome


def test_an_nvml_that_hangs_ends_in_time(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes.a100_roce(machine.root)
    driven(machine, nvml="#include <unistd.h>\nint nvmlInit_v2(void) { sleep(60); return 0; }")
    monkeypatch.setattr("validate.probes.native.LOAD_SECONDS", 1.0)
    one = machine.findings("gpu")["gpu.nvml"]
    assert one.outcome == FAILED
    assert "did not end within" in one.measured


def test_memory_is_asked_of_every_gpu(machine: Machine) -> None:
    nodes.a100_roce(machine.root)
    driven(machine)
    machine.lib("libcudart.so.12", runtime_library())
    one = machine.findings("cuda")["cuda.malloc"]
    assert (one.outcome, one.measured) == (PASSED, "1 KiB on 8 GPUs")
    machine.lib("libcudart.so.12", runtime_library(count=1, malloc=46))
    one = machine.findings("cuda")["cuda.malloc"]
    assert (one.outcome, one.measured) == (FAILED, "GPU 0 returned 46")
