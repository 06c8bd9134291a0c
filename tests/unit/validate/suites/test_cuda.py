"""Test CUDA on made-up machines: the toolkit, and the driver if there is one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unit import conftest
from unit.validate.gpu_machines import (
    LIB_DIR,
    Machine,
    compiled,
    gpu_on_bus,
    runtime_library,
    version_function,
    write,
)
from validate.check import FAILED, PASSED, SKIPPED, WARNED
from validate.probes import aside, cuda

if TYPE_CHECKING:
    from pathlib import Path

JSON = '{"cuda": {"version": "12.4.1"}, "cuda_nvcc": {"version": "12.4.131"}}'


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Make a CUDA 12.4 image without any GPU."""
    one = Machine(tmp_path, monkeypatch)
    one.promise("cuda", "12.4.131", flavour="runtime", cudart="12")
    write(tmp_path, "/usr/local/cuda/version.json", JSON)
    one.lib("libcudart.so.12", runtime_library(count=1))
    return one


def driver(machine: Machine, code: int = 0, serves: int = 12040) -> None:
    """Add the driver's library, as the container toolkit mounts it."""
    source = f"int cuInit(unsigned f) {{ return {code}; }}\n"
    machine.lib("libcuda.so.1", source + version_function("cuDriverGetVersion", serves))
    mount = f"36 35 0:1 / {LIB_DIR}/libcuda.so.1 ro - ext4 /dev/x ro\n"
    write(machine.root, "/proc/self/mountinfo", mount)


def test_a_whole_toolkit_without_a_gpu_passes_and_the_driver_rests(machine: Machine) -> None:
    found = machine.findings("cuda")
    ids = ("cuda.toolkit", "cuda.cudart", "cuda.libcuda-origin", "cuda.env")
    assert [found[name].outcome for name in ids] == [PASSED] * 4
    live = [found[name] for name in ("cuda.init", "cuda.driver-ver", "cuda.uvm")]
    assert [(one.outcome, one.reason) for one in live] == [(SKIPPED, "no-gpu-hw")] * 3
    assert set(machine.findings("cuda", static=True)) == set(ids)


@pytest.mark.parametrize(
    ("promised", "outcome"),
    [
        ("12.4.131", PASSED),
        ("12.4.1", PASSED),
        ("12.4", PASSED),
        ("12.4.99", FAILED),
        ("12.4.0", FAILED),
    ],
)
def test_a_build_or_a_toolkit_release_may_be_promised(
    machine: Machine, promised: str, outcome: str
) -> None:
    machine.promise("cuda", promised)
    assert machine.findings("cuda")["cuda.toolkit"].outcome == outcome


def test_a_toolkit_of_another_release_fails_by_its_own_file(machine: Machine) -> None:
    machine.promise("cuda", "11.3.109")
    found = machine.findings("cuda", static=True)
    assert found["cuda.toolkit"].outcome == FAILED
    assert "the recipe says 11.3.109" in found["cuda.toolkit"].measured
    assert found["cuda.cudart"].measured.startswith("libcudart.so.11.0 is nowhere")


def test_an_old_toolkit_says_it_in_a_text_file(machine: Machine) -> None:
    machine.promise("cuda", "10.1.243")
    (machine.root / "usr/local/cuda/version.json").unlink()
    write(machine.root, "/usr/local/cuda/version.txt", "CUDA Version 10.1.243\n")
    machine.lib("libcudart.so.10.1", version_function("cudaRuntimeGetVersion", 10010))
    found = machine.findings("cuda", static=True)
    assert found["cuda.toolkit"].measured == "version.txt 10.1.243"
    assert (found["cuda.toolkit"].outcome, found["cuda.cudart"].outcome) == (PASSED, PASSED)


def test_devel_without_the_compiler_and_runtime_with_it_fail(machine: Machine) -> None:
    machine.promise("cuda", "12.4.131", flavour="devel")
    one = machine.findings("cuda", static=True)["cuda.toolkit"]
    assert one.measured == (
        "nvcc is neither in /usr/local/cuda/bin nor on PATH, the recipe says devel"
    )


@pytest.mark.parametrize("folder", ["/usr/local/cuda/bin", "/usr/bin"])
@pytest.mark.parametrize(("flavour", "outcome"), [("devel", PASSED), ("runtime", FAILED)])
def test_the_compiler_is_asked_for_its_build(
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    flavour: str,
    outcome: str,
    folder: str,
) -> None:
    said = "Cuda compilation tools, release 12.4, V12.4.131"
    nvcc = write(machine.root, f"{folder}/nvcc", f"#!/bin/sh\necho '{said}'\n")
    nvcc.chmod(0o755)
    monkeypatch.setattr(conftest, "HARMLESS", (*conftest.HARMLESS, str(nvcc)))
    machine.promise("cuda", "12.4.131", flavour=flavour)
    one = machine.findings("cuda", static=True)["cuda.toolkit"]
    assert one.outcome == outcome
    assert ("nvcc 12.4.131" in one.measured) == (outcome == PASSED)


def test_nvcc_has_to_be_of_the_build_that_the_row_names(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "Cuda compilation tools, release 12.4, V12.4.131"
    nvcc = write(machine.root, "/usr/local/cuda/bin/nvcc", f"#!/bin/sh\necho '{said}'\n")
    nvcc.chmod(0o755)
    monkeypatch.setattr(conftest, "HARMLESS", (*conftest.HARMLESS, str(nvcc)))
    machine.promise("cuda", "12.4.1", flavour="devel", nvcc="12.4.131", cudart="12")
    assert machine.findings("cuda", static=True)["cuda.toolkit"].outcome == PASSED
    machine.promise("cuda", "12.4.1", flavour="devel", nvcc="12.4.99", cudart="12")
    one = machine.findings("cuda", static=True)["cuda.toolkit"]
    assert (one.outcome, one.measured) == (FAILED, "nvcc says 12.4.131, the recipe says 12.4.99")


def test_the_build_of_the_run_time_is_not_the_build_of_the_compiler(machine: Machine) -> None:
    """Debian packs CUDA without version.json; its 12.4.131 has a libcudart.so.12.4.127."""
    (machine.root / "usr/local/cuda/version.json").unlink()
    folder = machine.root / LIB_DIR.lstrip("/")
    (folder / "libcudart.so.12").rename(folder / "libcudart.so.12.4.127")
    (folder / "libcudart.so.12").symlink_to("libcudart.so.12.4.127")
    one = machine.findings("cuda", static=True)["cuda.toolkit"]
    assert (one.outcome, one.measured) == (PASSED, "libcudart 12.4")


def test_a_run_time_of_another_release_fails_by_its_own_word(machine: Machine) -> None:
    machine.lib("libcudart.so.12", version_function("cudaRuntimeGetVersion", 12020))
    one = machine.findings("cuda", static=True)["cuda.cudart"]
    assert one.outcome == FAILED
    assert "says 12.2, the recipe says 12.4.131" in one.measured


def test_a_run_time_that_only_a_wheel_brings_counts(machine: Machine) -> None:
    source = machine.root / LIB_DIR.lstrip("/") / "libcudart.so.12"
    target = machine.site / "nvidia/cuda_runtime/lib/libcudart.so.12"
    target.parent.mkdir(parents=True)
    source.rename(target)
    one = machine.findings("cuda", static=True)["cuda.cudart"]
    assert (one.outcome, one.measured) == (PASSED, f"12.4 from {target}")


def test_an_old_run_time_without_a_driver_is_taken_by_its_name(machine: Machine) -> None:
    machine.promise("cuda", "11.8.89")
    machine.lib("libcudart.so.11.8.89", "int cudaRuntimeGetVersion(int *v) { return 35; }")
    link = machine.root / LIB_DIR.lstrip("/") / "libcudart.so.11.0"
    link.symlink_to("libcudart.so.11.8.89")
    one = machine.findings("cuda", static=True)["cuda.cudart"]
    assert (one.outcome, one.measured[:10]) == (PASSED, "11.8 from ")
    assert one.measured.endswith("by its name: before CUDA 12 it answers with a driver only")
    machine.promise("cuda", "11.3.109")
    assert machine.findings("cuda", static=True)["cuda.cudart"].outcome == FAILED


@pytest.mark.parametrize("wheel", [True, False])
def test_an_old_run_time_of_a_wheel_is_taken_by_its_metadata(machine: Machine, wheel: bool) -> None:
    machine.promise("cuda", "11.8.89")
    source = "int cudaRuntimeGetVersion(int *v) { return 35; }"
    compiled(machine.site, "nvidia/cuda_runtime/lib/libcudart.so.11.0", source)
    if wheel:
        (machine.site / "nvidia_cuda_runtime_cu11-11.8.89.dist-info").mkdir()
    one = machine.findings("cuda", static=True)["cuda.cudart"]
    assert (one.outcome, one.reason) == ((PASSED, "") if wheel else (SKIPPED, "no-gpu-hw"))


def test_a_run_time_that_refuses_otherwise_fails(machine: Machine) -> None:
    machine.lib("libcudart.so.12", "int cudaRuntimeGetVersion(int *v) { return 1; }")
    one = machine.findings("cuda", static=True)["cuda.cudart"]
    assert (one.outcome, one.measured[-10:]) == (FAILED, "returned 1")


def test_a_library_that_crashes_ends_only_its_own_process(machine: Machine) -> None:
    crash = "__attribute__((constructor)) void f(void) { *(volatile int *)0 = 1; }"
    machine.lib("libcudart.so.12", crash)
    one = machine.findings("cuda", static=True)["cuda.cudart"]
    assert (one.outcome, one.measured) == (FAILED, "libcudart.so.12 crashed: SIGSEGV")


def test_stubs_on_the_loaders_path_fail(machine: Machine) -> None:
    write(machine.root, "/etc/ld.so.conf", "/usr/local/cuda/lib64/stubs\n")
    write(machine.root, "/usr/local/cuda/lib64/stubs/libcuda.so")
    one = machine.findings("cuda", static=True)["cuda.libcuda-origin"]
    assert one.outcome == FAILED
    assert "ldconfig" in one.remedy


def test_a_compatibility_package_on_the_loaders_path_warns(machine: Machine) -> None:
    write(machine.root, "/etc/ld.so.conf", "/usr/local/cuda/compat\n")
    write(machine.root, "/usr/local/cuda/compat/libcuda.so.1")
    one = machine.findings("cuda", static=True)["cuda.libcuda-origin"]
    assert one.outcome == WARNED
    assert "803" in one.cause


def test_a_recipe_with_cuda_compat_wants_its_library_first(machine: Machine) -> None:
    machine.promise("cuda-compat", "12.4.1")
    write(machine.root, "/usr/local/cuda/compat/libcuda.so.1")
    driver(machine)
    write(machine.root, "/etc/ld.so.conf", "/usr/local/cuda/compat\n")
    one = machine.findings("cuda", static=True)["cuda.libcuda-origin"]
    assert (one.outcome, "/compat/" in one.measured) == (PASSED, True)
    write(machine.root, "/etc/ld.so.conf", "/nowhere\n")
    one = machine.findings("cuda", static=True)["cuda.libcuda-origin"]
    assert one.outcome == FAILED
    assert "the recipe has cuda-compat, the loader takes" in one.measured


@pytest.mark.parametrize(
    ("there", "outcome"),
    [
        (("libcuda.so.1", "libcuda.so.550.163.01"), PASSED),
        (("libcuda.so.1", "libcuda.so.535.54.03"), FAILED),
        (("libcuda.so.550.163.01",), FAILED),
        ((), FAILED),
    ],
)
def test_the_library_of_cuda_compat_is_of_the_recipes_driver(
    machine: Machine, there: tuple[str, ...], outcome: str
) -> None:
    folder = "/usr/local/cuda/compat"
    machine.promise("cuda-compat", "12.4.1", folder=folder, libcuda="550.54.15")
    for name in there:
        write(machine.root, f"{folder}/{name}")
    assert machine.findings("cuda-compat", static=True)["cuda-compat.lib"].outcome == outcome


def test_a_driver_library_of_the_image_itself_warns(machine: Machine) -> None:
    driver(machine)
    write(machine.root, "/proc/self/mountinfo")
    one = machine.findings("cuda", static=True)["cuda.libcuda-origin"]
    assert one.outcome == WARNED
    assert one.measured.endswith("libcuda.so.1 belongs to the image")


def test_a_gpu_that_was_not_passed_fails_with_the_line_that_passes_it(machine: Machine) -> None:
    gpu_on_bus(machine.root)
    found = machine.findings("cuda")
    assert found["cuda.init"].outcome == FAILED
    assert found["cuda.init"].remedy == cuda.PASS_GPUS
    assert found["cuda.driver-ver"].reason == "blocked-by"


def test_devices_without_the_drivers_library_fail(machine: Machine) -> None:
    write(machine.root, "/dev/nvidiactl")
    one = machine.findings("cuda")["cuda.init"]
    assert (one.outcome, one.measured) == (FAILED, "/dev/nvidiactl are here, libcuda.so.1 is not")


@pytest.mark.parametrize("code", sorted(cuda.INIT_CODES))
def test_each_known_code_of_the_driver_has_its_cause(machine: Machine, code: int) -> None:
    gpu_on_bus(machine.root)
    driver(machine, code)
    one = machine.findings("cuda")["cuda.init"]
    assert (one.outcome, one.measured) == (FAILED, f"cuInit returned {code}")
    assert (one.cause, one.remedy) == cuda.INIT_CODES[code]


def test_a_gpu_that_was_passed_passes(machine: Machine) -> None:
    gpu_on_bus(machine.root)
    driver(machine)
    for node in ("nvidia0", "nvidiactl", "nvidia-uvm"):
        write(machine.root, f"/dev/{node}")
    found = machine.findings("cuda")
    assert [one.outcome for one in found.values()] == [PASSED] * len(found)
    (machine.root / "dev/nvidia-uvm").unlink()
    assert machine.findings("cuda")["cuda.uvm"].outcome == FAILED


@pytest.mark.parametrize(
    ("version", "outcome"), [("525.85.12", WARNED), ("470.57.02", FAILED), ("", FAILED)]
)
def test_an_older_driver_warns_above_the_floor_and_fails_below(
    machine: Machine, version: str, outcome: str
) -> None:
    gpu_on_bus(machine.root)
    driver(machine, serves=12000)
    text = f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {version}  Tue\n" if version else ""
    write(machine.root, "/proc/driver/nvidia/version", text)
    one = machine.findings("cuda")["cuda.driver-ver"]
    assert one.outcome == outcome
    assert "550.54.14" in one.remedy


def test_variables_that_poison_cuda_warn(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    monkeypatch.setenv("CUDA_PROFILE", "1")
    one = machine.findings("cuda", static=True)["cuda.env"]
    assert (one.outcome, one.remedy) == (
        WARNED,
        aside.unset(["CUDA_PROFILE", "CUDA_VISIBLE_DEVICES"]),
    )


@pytest.mark.parametrize(
    ("version", "name"),
    [("9.0.176", "9.0"), ("10.1", "10.1"), ("11.8.89", "11.0"), ("12.4", "12"), ("13.0", "13")],
)
def test_the_run_times_name_follows_the_release(version: str, name: str) -> None:
    assert cuda.cudart(version) == f"libcudart.so.{name}"
