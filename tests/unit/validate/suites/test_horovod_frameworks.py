"""Test Horovod in images of several frameworks, each of which has a Horovod of its own."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from unit import conftest
from unit.validate.gpu_machines import Machine, compiled, write
from unit.validate.suites.test_openmpi import MPIRUN, OMPI_INFO, TORCH, mpi_in, program
from validate.check import FAILED, PASSED, SKIPPED

if TYPE_CHECKING:
    from pathlib import Path

TENSORFLOW = """
__version__ = "2.5.0"
executing_eagerly = lambda: {eager}
class sysconfig:
    get_build_info = staticmethod(dict)
class test:
    is_built_with_cuda = staticmethod(lambda: False)
class Array(list):
    tolist = numpy = asnumpy = lambda self: self
class Session:
    __enter__ = lambda self: self
    __exit__ = lambda self, *ended: None
    run = lambda self, total: total
class compat:
    class v1:
        pass
compat.v1.Session = Session
constant = Array
"""
MXNET = """
__version__ = "1.9.1"
class Array(list):
    tolist = asnumpy = lambda self: self
class nd:
    array = Array
"""
TENSOR = """
class Tensor(list):
    tolist = lambda self: self
tensor = Tensor
"""
HOROVOD = """
import os
mpi_built = lambda: {mpi}
nccl_built = gloo_built = lambda: False
Sum = "sum"
init = lambda: None
rank = lambda: int(os.environ["OMPI_COMM_WORLD_RANK"])
size = lambda: 2
def allreduce(values, name, average=None, op=None):
    return type(values)([{total}] * len(values))
"""
BROKEN = "raise ImportError('Extension horovod.tensorflow has not been built')\n"
IDS = {"torch": "torch", "tensorflow": "tf", "mxnet": "mxnet"}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Make an image with Open MPI, three frameworks and a Horovod for each of them."""
    monkeypatch.delenv("OPAL_PREFIX", raising=False)
    one = Machine(tmp_path, monkeypatch)
    one.promise("openmpi", "4.1.0", prefix=f"{tmp_path}/openmpi")
    write(one.site, "horovod/__init__.py", "__version__ = '0.28.1'\n")
    metadata = "Metadata-Version: 2.1\nName: horovod\nVersion: 0.28.1\n"
    write(one.site, "horovod-0.28.1.dist-info/METADATA", metadata)
    one.promise("horovod", "0.28.1", mpi="true")
    for name, version in (("torch", "1.11.0"), ("tensorflow", "2.5.0"), ("mxnet", "1.9.1")):
        one.promise(name, version)
        horovod(one, name)
    torch = TORCH.replace("2.4.1", "1.11.0") + TENSOR
    write(one.site, "torch/__init__.py", torch)
    write(one.site, "horovod/torch/mpi_lib_v2.py")
    write(one.site, "tensorflow/__init__.py", TENSORFLOW.format(eager=True))
    write(one.site, "mxnet/__init__.py", MXNET)
    own = mpi_in(one, "openmpi/lib")
    for name in ("tensorflow", "mxnet"):
        compiled(one.root, f"site/horovod/{name}/mpi_lib.so", f"int {name};", *own)
    linked = compiled(one.root, "site/horovod/torch/real.so", "int torch;", *own)
    write(one.site, "horovod/torch/mpi_lib_v2.py", f"__file__ = {str(linked)!r}\n")
    program(one, monkeypatch, "mpirun", MPIRUN.format(python=sys.executable))
    program(one, monkeypatch, "ompi_info", OMPI_INFO.format(prefix=f"{tmp_path}/openmpi", all=":"))
    monkeypatch.setattr(conftest, "HARMLESS", (*conftest.HARMLESS, "/sbin/ldconfig", "ldd"))
    return one


def horovod(machine: Machine, name: str, *, total: float = 3.0, mpi: bool = True) -> None:
    """Write the Horovod of one framework."""
    text = HOROVOD.format(total=total, mpi=mpi)
    write(machine.site, f"horovod/{name}/__init__.py", text)


def only(machine: Machine, *names: str) -> None:
    """Make it an image of these frameworks alone."""
    for name in set(IDS) - set(names):
        del machine.components[name]
        (machine.site / name / "__init__.py").unlink()


def failed(machine: Machine, *, static: bool = False) -> list[str]:
    found = machine.findings("horovod", static=static)
    return sorted(name for name, one in found.items() if one.outcome == FAILED)


def test_each_framework_adds_up_through_its_own_horovod(machine: Machine) -> None:
    found = machine.findings("horovod")
    for name in IDS.values():
        one = found[f"hvd.{name}"]
        assert (one.outcome, one.measured) == (PASSED, "1 + 2 is 3.0 and 3.0")
        assert found[f"hvd.{name}-abi"].outcome == PASSED
    assert found["hvd.build"].measured == "mpi for PyTorch, TensorFlow, MXNet"
    assert found["hvd.tf-abi"].measured == "mpi_lib.so"


def test_a_release_that_computes_in_graphs_adds_up_too(machine: Machine) -> None:
    write(machine.site, "tensorflow/__init__.py", TENSORFLOW.format(eager=False))
    assert machine.findings("horovod")["hvd.tf"].outcome == PASSED


def test_a_horovod_that_cannot_be_imported_fails_for_that_framework_alone(machine: Machine) -> None:
    write(machine.site, "horovod/tensorflow/__init__.py", BROKEN)
    assert failed(machine, static=True) == ["hvd.tf-abi"]
    found = machine.findings("horovod")
    assert failed(machine) == ["hvd.tf", "hvd.tf-abi"]
    said = "ImportError: Extension horovod.tensorflow has not been built"
    assert all(said in found[name].measured for name in ("hvd.tf", "hvd.tf-abi"))
    assert found["hvd.mxnet"].outcome == found["hvd.torch"].outcome == PASSED


@pytest.mark.parametrize("name", ["torch", "tensorflow", "mxnet"])
def test_a_wrong_sum_fails_for_that_framework_alone(machine: Machine, name: str) -> None:
    horovod(machine, name, total=2.0)
    found = machine.findings("horovod")
    assert [one for one in found if found[one].outcome == FAILED] == [f"hvd.{IDS[name]}"]
    said = found[f"hvd.{IDS[name]}"].measured
    assert said == "1 + 2 on two ranks: rank 0 has 2.0; rank 1 has 2.0"


@pytest.mark.parametrize("name", ["torch", "tensorflow", "mxnet"])
def test_an_image_of_one_framework_is_measured_through_it(machine: Machine, name: str) -> None:
    only(machine, name)
    found = machine.findings("horovod")
    passed = {f"hvd.{one}" for one in ("dist", "build", "link", "size")}
    passed |= {f"hvd.{IDS[name]}", f"hvd.{IDS[name]}-abi"}
    assert {one for one in found if found[one].outcome == PASSED} == passed
    rest = [found[f"hvd.{one}"] for one in IDS.values() if one != IDS[name]]
    assert {(one.outcome, one.reason) for one in rest} == {(SKIPPED, "not-in-recipe")}


def test_one_framework_without_horovod_blocks_what_needs_it(machine: Machine) -> None:
    only(machine, "tensorflow")
    write(machine.site, "horovod/tensorflow/__init__.py", BROKEN)
    found = machine.findings("horovod")
    assert [one for one in found if found[one].outcome == FAILED] == ["hvd.tf-abi", "hvd.tf"]
    one = found["hvd.build"]
    assert (one.outcome, one.reason, one.measured) == (SKIPPED, "blocked-by", "hvd.tf-abi")


def test_a_framework_that_the_recipe_does_not_promise_horovod_for_rests(machine: Machine) -> None:
    machine.components["horovod"]["facts"]["frameworks"] = ["torch"]
    write(machine.site, "horovod/tensorflow/__init__.py", BROKEN)
    assert failed(machine) == []
    said = "the recipe promises no Horovod for TensorFlow"
    assert machine.findings("horovod")["hvd.tf-abi"].measured == said


def test_one_framework_s_horovod_without_mpi_is_named(machine: Machine) -> None:
    horovod(machine, "mxnet", mpi=False)
    one = machine.findings("horovod", static=True)["hvd.build"]
    assert (one.outcome, one.measured) == (
        FAILED,
        "built without MPI for MXNet, the recipe says with",
    )


def test_one_framework_s_horovod_of_another_mpi_is_named(machine: Machine) -> None:
    compiled(
        machine.root, "openmpi/bin/ompi_info", "int launcher;", *mpi_in(machine, "openmpi/lib")
    )
    other = mpi_in(machine, "other/lib")
    compiled(machine.root, "site/horovod/mxnet/mpi_lib.so", "int mxnet;", *other)
    one = machine.findings("horovod", static=True)["hvd.link"]
    assert one.outcome == FAILED
    assert one.measured.endswith(
        f"Horovod for MXNet would load {machine.root}/other/lib/libmpi.so.40"
    )


def test_ranks_that_are_alone_fail_once(machine: Machine) -> None:
    text = HOROVOD.format(total=1.0, mpi=True).replace("size = lambda: 2", "size = lambda: 1")
    write(machine.site, "horovod/torch/__init__.py", text)
    found = machine.findings("horovod")
    assert [one for one in found if found[one].outcome == FAILED] == ["hvd.size"]
    assert (found["hvd.torch"].reason, found["hvd.torch"].measured) == ("blocked-by", "hvd.size")


def test_an_old_tensorflow_without_a_driver_rests(machine: Machine) -> None:
    only(machine, "tensorflow")
    text = "raise ImportError('libcuda.so.1: cannot open shared object file')\n"
    write(machine.site, "tensorflow/__init__.py", text)
    one = machine.findings("horovod", static=True)["hvd.build"]
    assert (one.outcome, one.reason) == (SKIPPED, "no-gpu-hw")
