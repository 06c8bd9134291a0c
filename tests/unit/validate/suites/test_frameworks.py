"""Test TensorFlow, MXNet, LightCC and GCC on made-up machines."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from unit import conftest
from unit.validate.gpu_machines import Machine, compiled, gpu_on_bus, write
from validate.check import FAILED, PASSED, SKIPPED, WARNED
from validate.probes import cuda, lightcc

if TYPE_CHECKING:
    from pathlib import Path

NO_DRIVER = "raise ImportError('libcuda.so.1: cannot open shared object file')\n"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    one = Machine(tmp_path, monkeypatch)
    one.promise("cuda", "11.2.152")
    one.promise("tensorflow", "1.15.5+ttensorflow", cuda="11.2")
    one.promise("mxnet", "1.4.1")
    one.promise("lightcc", "3.1.1", distribution="light-horovod")
    one.promise("gcc", "4.9")
    return one


def installed(machine: Machine, name: str, version: str) -> None:
    """Write the metadata of a wheel for the image's Python."""
    folder = f"{name.replace('-', '_')}-{version}.dist-info"
    write(
        machine.site,
        f"{folder}/METADATA",
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
    )


def tensorflow(machine: Machine, version: str = "1.15.5", built: str = "11.2") -> None:
    """Install a TensorFlow that answers the checks; without `built` it is a CPU build."""
    text = f"""
        __version__ = {version!r}
        class sysconfig:
            get_build_info = staticmethod(lambda: {{"cuda_version": {built!r}}})
        class test:
            is_built_with_cuda = staticmethod(lambda: {bool(built)})
    """
    write(machine.site, "tensorflow/__init__.py", "\n".join(t[8:] for t in text.splitlines()))


def test_a_tensorflow_for_this_cuda_passes_by_its_own_word(machine: Machine) -> None:
    tensorflow(machine)
    found = machine.findings("tensorflow", static=True)
    assert [one.outcome for one in found.values()] == [PASSED] * 3
    assert found["tf.version"].measured == "1.15.5"


def test_a_tensorflow_that_does_not_say_its_cuda_passes_too(machine: Machine) -> None:
    tensorflow(machine)
    path = machine.site / "tensorflow/__init__.py"
    path.write_text(path.read_text().replace("get_build_info", "get_include"))
    one = machine.findings("tensorflow", static=True)["tf.cuda-build"]
    assert (one.outcome, one.measured) == (PASSED, "CUDA of a release that it does not tell")


@pytest.mark.parametrize(
    ("version", "built", "check", "measured"),
    [
        ("2.4.1", "11.2", "tf.version", "tensorflow 2.4.1, the recipe says 1.15.5"),
        ("1.15.5", "10.1", "tf.cuda-build", "built for CUDA 10.1, the recipe says 11.2"),
        ("1.15.5", "", "tf.cuda-build", "tensorflow was built without CUDA"),
    ],
)
def test_another_tensorflow_fails(
    machine: Machine, version: str, built: str, check: str, measured: str
) -> None:
    tensorflow(machine, version, built)
    found = machine.findings("tensorflow", static=True)
    failed = [(one.check.id, one.measured) for one in found.values() if one.outcome == FAILED]
    assert failed == [(check, measured)]


@pytest.mark.parametrize(("suite", "short"), [("tensorflow", "tf"), ("mxnet", "mxnet")])
def test_a_framework_that_is_not_there_fails_once(machine: Machine, suite: str, short: str) -> None:
    found = machine.findings(suite, static=True)
    assert found[f"{short}.import"].outcome == FAILED
    assert "ModuleNotFoundError" in found[f"{short}.import"].measured
    assert (found[f"{short}.version"].reason) == "blocked-by"


@pytest.mark.parametrize(
    ("suite", "short", "dist", "version"),
    [("tensorflow", "tf", "ttensorflow", "1.15.5"), ("mxnet", "mxnet", "mxnet-cu90", "1.4.1")],
)
def test_an_old_wheel_without_a_driver_rests_and_its_metadata_is_measured(
    machine: Machine, suite: str, short: str, dist: str, version: str
) -> None:
    write(machine.site, f"{suite}/__init__.py", NO_DRIVER)
    installed(machine, dist, version)
    found = machine.findings(suite, static=True)
    one = found[f"{short}.import"]
    assert (one.outcome, one.reason) == (SKIPPED, "no-gpu-hw")
    assert found[f"{short}.version"].outcome == PASSED
    assert found[f"{short}.version"].measured.startswith(f"{version} by its metadata")
    installed_elsewhere = machine.site / f"{dist.replace('-', '_')}-{version}.dist-info/METADATA"
    installed_elsewhere.write_text(f"Metadata-Version: 2.1\nName: {dist}\nVersion: 1.0\n")
    assert machine.findings(suite, static=True)[f"{short}.version"].outcome == FAILED


def test_an_old_wheel_fails_where_the_gpu_was_not_passed(machine: Machine) -> None:
    write(machine.site, "mxnet/__init__.py", NO_DRIVER)
    gpu_on_bus(machine.root)
    one = machine.findings("mxnet", static=True)["mxnet.import"]
    assert (one.outcome, one.remedy) == (FAILED, cuda.PASS_GPUS)


def test_an_mxnet_that_loads_passes_by_its_own_word(machine: Machine) -> None:
    write(machine.site, "mxnet/__init__.py", "__version__ = '1.4.1'\n")
    found = machine.findings("mxnet", static=True)
    assert [one.outcome for one in found.values()] == [PASSED, PASSED]
    machine.promise("mxnet", "1.5.0")
    one = machine.findings("mxnet", static=True)["mxnet.version"]
    assert one.measured == "mxnet 1.4.1, the recipe says 1.5.0"


def light_horovod(machine: Machine, *, fork: bool = True) -> None:
    installed(machine, "light-horovod", "3.1.1")
    source = f'const char knob[] = "{"LIGHT_2D_ALLREDUCE" if fork else "HOROVOD_CYCLE_TIME"}";'
    compiled(machine.site, "horovod/torch/mpi_lib_v2.so", source)


def test_lightcc_alone_passes(machine: Machine) -> None:
    light_horovod(machine)
    found = machine.findings("lightcc", static=True)
    outcomes = [found[f"lightcc.{name}"].outcome for name in ("dist", "strings", "env")]
    assert outcomes == [PASSED, PASSED, SKIPPED]
    assert found["lightcc.dist"].measured == "light-horovod 3.1.1"


def test_horovod_beside_lightcc_fails(machine: Machine) -> None:
    light_horovod(machine)
    installed(machine, "horovod", "0.21.3")
    one = machine.findings("lightcc", static=True)["lightcc.dist"]
    assert (one.outcome, one.measured) == (
        FAILED,
        "light-horovod and horovod 0.21.3 are installed",
    )


def test_another_lightcc_and_none_fail(machine: Machine) -> None:
    one = machine.findings("lightcc", static=True)["lightcc.dist"]
    assert one.measured == "light-horovod is not installed"
    light_horovod(machine)
    machine.promise("lightcc", "3.0.0")
    one = machine.findings("lightcc", static=True)["lightcc.dist"]
    assert one.measured == "light-horovod 3.1.1, the recipe says 3.0.0"


@pytest.mark.parametrize(
    ("name", "value", "outcome"),
    [
        ("LIGHT_TOPK_RATIO", "0.05", "passed"),
        ("LIGHT_TOPK_RATIO", "1.5", "warned"),
        ("LIGHT_TOPK_RATIO", "half", "warned"),
        ("LIGHT_2D_ALLREDUCE", "true", "warned"),
        ("LIGHT_TOPK_THRESHOLD", "1e6", "warned"),
        ("LIGHT_TOPK_THRESHOLD", "2097152", "passed"),
        ("LIGHT_INTRA_SIZE", "0", "warned"),
    ],
)
def test_a_value_that_lightcc_cannot_take_warns(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, name: str, value: str, outcome: str
) -> None:
    monkeypatch.setenv(name, value)
    one = machine.findings("lightcc", static=True)["lightcc.env"]
    assert one.outcome == outcome
    assert outcome == "passed" or f"{name}={value}: " in one.measured


def test_plain_horovod_under_lightccs_name_warns(machine: Machine) -> None:
    light_horovod(machine, fork=False)
    one = machine.findings("lightcc", static=True)["lightcc.strings"]
    assert one.outcome == WARNED
    assert one.measured.endswith("mpi_lib_v2.so knows nothing of LIGHT_2D_ALLREDUCE")


def test_a_mistyped_setting_warns_with_the_one_that_was_meant(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIGHT_2D_ALREDUCE", "1")
    one = machine.findings("lightcc", static=True)["lightcc.env"]
    assert one.measured == "not known: LIGHT_2D_ALREDUCE, meant is LIGHT_2D_ALLREDUCE"
    assert one.remedy.startswith("unset LIGHT_2D_ALREDUCE; export LIGHT_2D_ALLREDUCE=1; sed ")
    assert lightcc.unknown({"LIGHT_TOPK_RATIO": "0.01", "LIGHT_Q": "1", "X": "1"}) == {
        "LIGHT_Q": ""
    }


@pytest.mark.parametrize(("size", "outcome"), [("1", PASSED), ("8", WARNED)])
def test_the_size_within_a_machine_is_its_number_of_gpus(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, size: str, outcome: str
) -> None:
    gpu_on_bus(machine.root)
    monkeypatch.setenv("LIGHT_INTRA_SIZE", size)
    assert machine.findings("lightcc", static=True)["lightcc.env"].outcome == outcome


def compilers(machine: Machine, monkeypatch: pytest.MonkeyPatch, **versions: str) -> None:
    """Put compilers that report these versions first on PATH."""
    for name, version in versions.items():
        path = write(machine.root, f"/bin/{name.replace('x', '+')}", f"#!/bin/sh\necho {version}\n")
        path.chmod(0o755)
        monkeypatch.setattr(conftest, "HARMLESS", (*conftest.HARMLESS, str(path)))
    monkeypatch.setenv("PATH", f"{machine.root}/bin:{os.environ['PATH']}")


def test_both_compilers_must_be_of_the_release(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    compilers(machine, monkeypatch, gcc="4.9.3", gxx="4.9.3")
    one = machine.findings("gcc", static=True)["gcc.version"]
    assert (one.outcome, one.measured) == (PASSED, "gcc 4.9.3, g++ 4.9.3")
    compilers(machine, monkeypatch, gxx="5.4.0")
    one = machine.findings("gcc", static=True)["gcc.version"]
    assert (one.outcome, one.measured) == (FAILED, "g++ 5.4.0, the recipe says 4.9")
    assert "--force-confold g++-4.9; " in one.remedy.partition("   # ")[0]
    assert f"{machine.root}/bin" not in one.remedy.partition("   # ")[0]  # not on the PATH now


def test_a_compiler_that_is_not_there_fails(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.promise("gcc", "12.2")
    monkeypatch.setenv("PATH", f"{machine.root}/nowhere")
    one = machine.findings("gcc", static=True)["gcc.version"]
    assert one.measured == "gcc and g++ not on PATH, the recipe says 12.2"
    assert one.remedy.startswith("apt-get update && apt-get install -y --reinstall ")
    assert " gcc-12 g++-12; " in one.remedy
