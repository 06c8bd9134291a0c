"""Test how PyTorch and Horovod were built: the CUDA of a wheel, and the NCCL of the image."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from unit import conftest
from unit.validate import trees
from unit.validate.gpu_machines import LIB_DIR, Machine, compiled, write
from validate.check import FAILED, PASSED, WARNED, CheckFailed
from validate.fixtures import Measure, Situation
from validate.suites import test_os

if TYPE_CHECKING:
    from pathlib import Path

TORCH = """
class version:
    cuda = "11.7"
class cuda:
    @staticmethod
    def device_count():
        return 0
class _C:
    _GLIBCXX_USE_CXX11_ABI = False
__version__ = "2.0.1+cu117"
"""

HOROVOD = """
def mpi_built():
    return True
def nccl_built():
    return {nccl}
def gloo_built():
    return False
"""

NCCL_NAME = "-Wl,-soname,libnccl.so.2"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Make a GPU image with Horovod, and torch of another CUDA than the toolkit's."""
    one = Machine(tmp_path, monkeypatch)
    one.device = "gpu"
    one.promise("torch", "2.0.1+cu117", cuda="11.7")
    one.promise("cuda", "11.8.0")
    write(one.site, "torch/__init__.py", TORCH)
    monkeypatch.setattr(conftest, "HARMLESS", (*conftest.HARMLESS, "/sbin/ldconfig", "ldd"))
    return one


def horovod(machine: Machine, *, over_nccl: bool, **facts: str) -> None:
    machine.promise("horovod", "0.28.1", **facts)
    write(machine.site, "horovod/__init__.py", "__version__ = '0.28.1'\n")
    write(machine.site, "horovod/torch/__init__.py", HOROVOD.format(nccl=over_nccl))
    write(machine.site, "horovod/torch/mpi_lib_v2.py")


def test_a_wheel_of_the_other_c_plus_plus_abi_fails(machine: Machine) -> None:
    machine.promise("torch", "2.0.1+cu117", cuda="11.7", cxx11_abi="0")
    assert machine.findings("torch", static=True)["torch.version"].outcome == PASSED
    machine.promise("torch", "2.0.1+cu117", cuda="11.7", cxx11_abi="1")
    one = machine.findings("torch", static=True)["torch.version"]
    said = "torch has _GLIBCXX_USE_CXX11_ABI=0, the recipe says 1"
    assert (one.outcome, one.measured) == (FAILED, said)


def test_a_wheel_without_cuda_fails_with_the_index_of_the_recipe_s(machine: Machine) -> None:
    write(machine.site, "torch/__init__.py", TORCH.replace('"11.7"', "None"))
    one = machine.findings("torch", static=True)["torch.cuda-build"]
    assert (one.outcome, one.measured) == (FAILED, "torch.version.cuda is None")
    index = "--index-url https://download.pytorch.org/whl/cu117 torch==2.0.1+cu117"
    assert f"{index}   # " in one.remedy
    assert one.remedy.startswith("PIP_BREAK_SYSTEM_PACKAGES=1 ")


def test_both_cudas_of_an_image_are_told(machine: Machine) -> None:
    one = machine.findings("torch", static=True)["torch.cuda-build"]
    told = "CUDA 11.7, beside the image's 11.8.0: extensions are compiled with that"
    assert (one.outcome, one.measured) == (PASSED, told)
    machine.promise("cuda", "11.7.1")
    assert machine.findings("torch", static=True)["torch.cuda-build"].measured == "CUDA 11.7"


@pytest.mark.parametrize(
    ("device", "image_has_nccl", "facts", "outcome"),
    [
        ("gpu", True, {}, FAILED),
        ("gpu", False, {}, PASSED),
        ("cpu", True, {}, PASSED),
        ("gpu", True, {"nccl": "false"}, PASSED),
        ("cpu", False, {"nccl": "true"}, FAILED),
    ],
)
def test_horovod_without_nccl_fails_where_the_recipe_has_one(
    machine: Machine, device: str, image_has_nccl: bool, facts: dict[str, str], outcome: str
) -> None:
    machine.device = device
    if image_has_nccl:
        machine.promise("nccl", "2.14.3")
    horovod(machine, over_nccl=False, **facts)
    found = machine.findings("horovod", static=True)["hvd.build"]
    assert found.outcome == outcome
    if outcome == FAILED:
        assert found.measured == "built without NCCL, the recipe says with"


def test_horovod_over_nccl_passes(machine: Machine) -> None:
    machine.promise("nccl", "2.14.3")
    horovod(machine, over_nccl=True, mpi="true", gloo="false")
    found = machine.findings("horovod", static=True)["hvd.build"]
    assert (found.outcome, found.measured) == (PASSED, "mpi, nccl")


def two_nccls(machine: Machine, first: str, second: str, *, shared: bool) -> None:
    """Let PyTorch load the NCCL of a wheel and that of the image.

    Horovod's extension is linked to NCCL if `shared`; otherwise it contains none.
    """
    places = ("wheel/libnccl.so.2", f"usr/lib/libnccl.so.{second}")
    paths = [
        compiled(
            machine.root, place, f'const char mark[] = "NCCL version {one}+cuda11.7";', NCCL_NAME
        )
        for place, one in zip(places, (first, second), strict=True)
    ]
    loads = "".join(f"ctypes.CDLL({str(path)!r})\n" for path in paths)
    write(machine.site, "torch/__init__.py", f"import ctypes\n{loads}{TORCH}")
    horovod(machine, over_nccl=True)
    linked = ["-Wl,--no-as-needed", str(paths[0])] if shared else []
    extension = compiled(machine.root, "site/horovod/torch/real.so", "int x;", *linked)
    write(machine.site, "horovod/torch/mpi_lib_v2.py", f"__file__ = {str(extension)!r}\n")


@pytest.mark.parametrize(
    ("versions", "shared", "outcome"),
    [
        (("2.14.3", "2.18.6"), True, FAILED),
        (("2.14.3", "2.18.6"), False, WARNED),
        (("2.18.6", "2.18.6"), True, WARNED),
    ],
)
@pytest.mark.silent("E6")
def test_two_nccls_in_a_process_fail_where_horovod_is_linked_to_one(
    machine: Machine, versions: tuple[str, str], outcome: str, *, shared: bool
) -> None:
    two_nccls(machine, *versions, shared=shared)
    one = machine.findings("torch", static=True)["torch.loaded-libs"]
    assert one.outcome == outcome
    root = str(machine.root.resolve())
    said = f"{versions[1]} {root}/usr/lib/libnccl.so.{versions[1]}, {versions[0]} {root}/wheel/"
    assert one.measured == f"libnccl: {said}libnccl.so.2"
    assert one.remedy.startswith("imagegen build")
    assert one.look.startswith("ldd ")


def test_a_plugin_of_open_mpi_that_lacks_a_library_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It fails where the recipe compiles Open MPI and where the distribution brings it."""
    monkeypatch.setattr(test_os, "_cache", lambda _: {})
    components = {
        "python": {"version": "3.11", "facts": {"interpreter": sys.executable}},
        "openmpi": {"version": "4.1.4", "facts": {"prefix": "/usr/local/openmpi"}},
    }
    recipe = trees.expected(tmp_path, components=components)
    image, measure = Situation(recipe, dict(os.environ), str(tmp_path), {}), Measure()
    absent = compiled(tmp_path, "elsewhere/libfab.so.1", "int x;", "-Wl,-soname,libfab.so.1")
    linked = ("-nostdlib", "-Wl,--no-as-needed", str(absent))
    for place in ("/usr/local/openmpi/lib", f"{LIB_DIR}/openmpi/lib"):
        plugin = compiled(tmp_path, f"{place}/openmpi/mca_mtl_ofi.so", "int y;", *linked)
        with pytest.raises(CheckFailed, match=f"^{plugin} needs libfab.so.1$"):
            test_os.test_elf_deps(image, measure)
        plugin.unlink()
    test_os.test_elf_deps(image, measure)
    assert measure.text.startswith("0 libraries and all that they load, ")
