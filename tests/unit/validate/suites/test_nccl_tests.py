"""Test the check of NVIDIA's own tests of NCCL on made-up machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unit import conftest
from unit.validate.gpu_machines import LIB_DIR, Machine, compiled
from unit.validate.suites.test_nccl import source
from unit.validate.suites.test_openmpi import mpi_in
from validate.check import FAILED, PASSED, SKIPPED

if TYPE_CHECKING:
    from pathlib import Path

NAMED = "-Wl,-soname,libnccl.so.2"
PROGRAMS = ("all_reduce_perf", "all_gather_perf")
BIN = "opt/nccl-tests/bin"


def linked_nccl(machine: Machine, folder: str) -> tuple[str, ...]:
    """Make the NCCL of the recipe in a folder, and options that link a program to it."""
    library = compiled(machine.root, f"{folder}/libnccl.so.2", source(20909, "2.9.9"), NAMED)
    return "-nostdlib", "-Wl,--no-as-needed", str(library), f"-Wl,-rpath,{library.parent}"


def program(machine: Machine, name: str, *linked: str) -> None:
    compiled(machine.root, f"{BIN}/{name}", f"int {name};", *linked).chmod(0o755)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Make an image with NCCL, Open MPI and two programs that are linked to both."""
    one = Machine(tmp_path, monkeypatch)
    one.promise("nccl", "2.9.9")
    one.promise("openmpi", "4.1.4", prefix=f"{tmp_path}/openmpi")
    one.promise("nccl-tests", "2.17.6")
    one.components["nccl-tests"]["facts"]["programs"] = list(PROGRAMS)
    both = (*linked_nccl(one, LIB_DIR), *mpi_in(one, "openmpi/lib"))
    compiled(one.root, "openmpi/bin/ompi_info", "int launcher;", *mpi_in(one, "openmpi/lib"))
    for name in PROGRAMS:
        program(one, name, *both)
    monkeypatch.setattr(conftest, "HARMLESS", (*conftest.HARMLESS, "/sbin/ldconfig", "ldd"))
    return one


def finding(machine: Machine) -> tuple[str, str]:
    one = machine.findings("nccl-tests", static=True)["nccl-tests.programs"]
    return one.outcome, one.measured


def test_programs_that_call_the_image_s_nccl_and_mpi_pass(machine: Machine) -> None:
    assert finding(machine) == (PASSED, "2 programs")


def test_an_image_without_them_rests(machine: Machine) -> None:
    del machine.components["nccl-tests"]
    assert finding(machine) == (SKIPPED, "`nccl-tests` is no component of this image")


def test_a_program_that_is_not_there_is_named(machine: Machine) -> None:
    (machine.root / BIN / PROGRAMS[0]).unlink()
    said = "all_reduce_perf is not in /opt/nccl-tests/bin"
    assert finding(machine) == (FAILED, said)


def test_a_program_that_loads_another_nccl_is_named(machine: Machine) -> None:
    other = linked_nccl(machine, "opt/other")
    program(machine, PROGRAMS[1], *other, *mpi_in(machine, "openmpi/lib"))
    outcome, said = finding(machine)
    assert outcome == FAILED
    assert said.startswith(f"all_gather_perf would load {machine.root}/opt/other/libnccl.so.2")


def test_a_program_that_was_compiled_without_mpi_is_named(machine: Machine) -> None:
    program(machine, PROGRAMS[0], *linked_nccl(machine, LIB_DIR))
    said = "all_reduce_perf finds no libmpi, or was compiled without it"
    assert finding(machine) == (FAILED, said)
