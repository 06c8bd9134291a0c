"""Test cuDNN on made-up machines, and what its numbers mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unit.validate.gpu_machines import LIB_DIR, Machine, compiled, size_function, write
from validate.check import FAILED, PASSED, SKIPPED, WARNED
from validate.probes import cudnn

if TYPE_CHECKING:
    from pathlib import Path


def source(number: int, built: int = 11030) -> str:
    cudart = size_function("cudnnGetCudartVersion", built)
    return size_function("cudnnGetVersion", number) + cudart


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Make an image with cuDNN 8.2.0, in two parts as the distribution packs them."""
    one = Machine(tmp_path, monkeypatch)
    one.promise("cuda", "11.3.109", flavour="devel")
    one.promise("cudnn", "8.2.0.53", soname="libcudnn.so.8")
    for name in ("libcudnn", "libcudnn_ops_infer"):
        part(one, name, "8.2.0", 8200)
    return one


def part(machine: Machine, name: str, version: str, number: int) -> None:
    machine.lib(f"{name}.so.{version}", source(number))
    link = machine.root / LIB_DIR.lstrip("/") / f"{name}.so.8"
    link.unlink(missing_ok=True)
    link.symlink_to(f"{name}.so.{version}")


def header(machine: Machine, *numbers: int) -> None:
    names = ("CUDNN_MAJOR", "CUDNN_MINOR", "CUDNN_PATCHLEVEL")
    lines = [f"#define {name} {number}\n" for name, number in zip(names, numbers, strict=True)]
    write(machine.root, "/usr/include/cudnn_version.h", "".join(lines))


@pytest.mark.parametrize(
    ("number", "version"),
    [(7401, "7.4.1"), (8200, "8.2.0"), (8907, "8.9.7"), (90100, "9.1.0"), (91002, "9.10.2")],
)
def test_numbers_changed_their_shape_with_version_9(number: int, version: str) -> None:
    assert cudnn.cudnn_version(number) == version


def test_a_whole_cudnn_passes_by_its_own_word(machine: Machine) -> None:
    header(machine, 8, 2, 0)
    found = machine.findings("cudnn", static=True)
    assert [one.outcome for one in found.values()] == [PASSED] * 4
    assert found["cudnn.version"].measured.endswith("libcudnn.so.8, for CUDA 11.3")
    assert found["cudnn.split"].measured == "2 libraries of 8.2.0"


def test_another_version_fails_and_blocks_the_rest(machine: Machine) -> None:
    machine.promise("cudnn", "8.1.1.33")
    found = machine.findings("cudnn", static=True)
    assert found["cudnn.version"].outcome == FAILED
    assert found["cudnn.version"].measured.startswith("8.2.0 from ")
    assert found["cudnn.split"].reason == "blocked-by"


def test_a_cudnn_that_is_not_there_fails(machine: Machine) -> None:
    machine.promise("cudnn", "9.1.0.70")
    one = machine.findings("cudnn", static=True)["cudnn.version"]
    assert one.measured == "libcudnn.so.9 is nowhere on the loader's path, nor in a wheel"


def test_a_cudnn_for_another_cuda_fails(machine: Machine) -> None:
    machine.promise("cuda", "12.4.131")
    one = machine.findings("cudnn", static=True)["cudnn.version"]
    assert one.measured == "cuDNN was built for CUDA 11.3, the recipe has 12.4.131"


def test_parts_of_two_versions_fail(machine: Machine) -> None:
    part(machine, "libcudnn_ops_infer", "8.1.1", 8101)
    one = machine.findings("cudnn", static=True)["cudnn.split"]
    assert one.outcome == FAILED
    assert one.measured == "8.1.1: libcudnn_ops_infer.so.8; 8.2.0: libcudnn.so.8"


def test_parts_without_a_version_in_their_names_are_asked(machine: Machine) -> None:
    machine.promise("cudnn", "9.1.0")
    machine.promise("cuda", "12.4.131")
    for name, number in (("libcudnn", 90100), ("libcudnn_graph", 90200)):
        folder = machine.site / "nvidia/cudnn/lib"
        compiled(folder, f"{name}.so.9", source(number, 12040))
    found = machine.findings("cudnn", static=True)
    assert found["cudnn.version"].outcome == PASSED
    assert found["cudnn.split"].measured == "9.1.0: libcudnn.so.9; 9.2.0: libcudnn_graph.so.9"


def test_a_header_of_another_version_warns_and_a_runtime_image_has_none(machine: Machine) -> None:
    header(machine, 8, 1, 1)
    assert machine.findings("cudnn", static=True)["cudnn.header"].outcome == WARNED
    machine.promise("cuda", "11.3.109", flavour="runtime")
    one = machine.findings("cudnn", static=True)["cudnn.header"]
    assert (one.outcome, one.reason) == (SKIPPED, "not-applicable")


def test_a_wheel_with_another_cudnn_warns(machine: Machine) -> None:
    compiled(machine.site, "nvidia/cudnn/lib/libcudnn.so.8", source(8500))
    one = machine.findings("cudnn", static=True)["cudnn.dupes"]
    assert one.outcome == WARNED
    assert "8.2.0" in one.measured
    assert "8.5.0" in one.measured


def test_a_wheel_finds_its_own_parts_and_those_of_other_wheels(machine: Machine) -> None:
    """libcudnn.so.8 opens its parts by name, and they need libcublas."""
    for name in ("libcudnn.so.8", "libcudnn_ops_infer.so.8"):
        (machine.root / LIB_DIR.lstrip("/") / name).unlink()
    blas = compiled(
        machine.site, "nvidia/cublas/lib/libcublas.so.11", "int b;", "-Wl,-soname,libcublas.so.11"
    )
    needs = ("-Wl,--no-as-needed", str(blas))
    compiled(machine.site, "nvidia/cudnn/lib/libcudnn.so.8", source(8200), *needs)
    one = machine.findings("cudnn", static=True)["cudnn.version"]
    assert one.outcome == PASSED
    blas.unlink()
    one = machine.findings("cudnn", static=True)["cudnn.version"]
    assert (one.outcome, one.measured[:29]) == (FAILED, "libcublas.so.11: cannot open ")


@pytest.mark.parametrize("wheel", [True, False])
def test_a_cudnn_that_needs_the_driver_is_taken_by_its_metadata(
    machine: Machine, wheel: bool
) -> None:
    for name in ("libcudnn.so.8", "libcudnn_ops_infer.so.8"):
        (machine.root / LIB_DIR.lstrip("/") / name).unlink()
    driver = compiled(machine.root, "/x/libcuda.so.1", "int c;", "-Wl,-soname,libcuda.so.1")
    needs = ("-Wl,--no-as-needed", str(driver))
    compiled(machine.site, "nvidia/cudnn/lib/libcudnn.so.8", source(8200), *needs)
    if wheel:
        (machine.site / "nvidia_cudnn_cu11-8.2.0.53.dist-info").mkdir()
    found = machine.findings("cudnn", static=True)
    one = found["cudnn.version"]
    assert (one.outcome, one.reason) == ((PASSED, "") if wheel else (SKIPPED, "no-gpu-hw"))
    assert one.measured.endswith("with a driver only")
    assert (found["cudnn.split"].outcome, found["cudnn.split"].reason) == (SKIPPED, "no-gpu-hw")
