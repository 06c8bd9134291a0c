"""Test a launch as a user writes it: which setting breaks it, here or in sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unit import conftest
from unit.validate import trees
from validate.check import CheckFailed
from validate.fixtures import Measure, Situation
from validate.probes.mpi import ADDED
from validate.suites import test_openmpi_plain

if TYPE_CHECKING:
    from pathlib import Path

MPIRUN = """#!/bin/sh
case "$*" in *"-mca pml ob1"*) OMPI_MCA_pml=ob1;; *) {system};; esac
if [ "$OMPI_MCA_pml" = ucx ]; then
  echo 'No components were able to be opened in the pml framework.' >&2
  echo '[here:1] PML ucx cannot be selected' >&2
  exit 1
fi
{end}
"""
SAID = "\n".join(f"echo '{line}'" for line in ADDED)


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(test_openmpi_plain, "_library", lambda _: "libmpi.so.40")
    program = tmp_path / "mpi/bin/mpirun"
    monkeypatch.setattr(conftest, "HARMLESS", (*conftest.HARMLESS, str(program)))
    mpirun(tmp_path / "mpi")
    return tmp_path / "mpi"


def mpirun(prefix: Path, *, end: str = SAID, system: str = "true") -> None:
    """Write an mpirun that reads one parameter; `system` is what its file sets."""
    trees.write(prefix, "bin/mpirun", MPIRUN.format(end=end, system=system)).chmod(0o755)


def look(prefix: Path, **env: str) -> str:
    components = {"openmpi": {"version": "4.1.4", "facts": {"prefix": str(prefix)}}}
    recipe = trees.expected(prefix, components=components)
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/root", **env}
    measure = Measure()
    test_openmpi_plain.test_plain(Situation(recipe, environment, str(prefix), {}), measure)
    return measure.text


def test_a_plain_launch_that_adds_up_passes(prefix: Path) -> None:
    assert look(prefix) == "2 ranks added up 1 MiB"


def test_the_one_variable_that_breaks_it_is_named_among_others(prefix: Path) -> None:
    with pytest.raises(CheckFailed) as failed:
        look(prefix, OMPI_MCA_pml="ucx", UCX_TLS="rc", OMPI_MCA_btl="tcp", NCCL_ALGO="Tree")
    said = "`mpirun` ended with exit code 1: No components were able to be opened in the pml "
    assert failed.value.measured == said + "framework."
    assert failed.value.cause == "it works without it: OMPI_MCA_pml=ucx in the environment"
    assert failed.value.remedy.startswith("unset OMPI_MCA_pml; sed ")


def test_a_setting_in_a_file_is_blamed_when_our_parameters_help(prefix: Path) -> None:
    mpirun(prefix, system="OMPI_MCA_pml=ucx")
    trees.write(prefix, "/etc/openmpi-mca-params.conf", "pml = ucx\n")
    with pytest.raises(CheckFailed) as failed:
        look(prefix)
    said = (
        "it works with `-mca pml ob1 -mca btl ^openib`: pml = ucx in /etc/openmpi-mca-params.conf"
    )
    assert failed.value.cause == said
    assert failed.value.remedy.startswith("sed -i ")


def test_what_only_sessions_have_is_tried_too(prefix: Path) -> None:
    trees.write(prefix, "/root/.bashrc", "export OMPI_MCA_pml=ucx\n")
    with pytest.raises(CheckFailed) as failed:
        look(prefix)
    assert failed.value.cause == "in a session, not here: OMPI_MCA_pml=ucx in /root/.bashrc"
    trees.write(prefix, "/root/.bashrc", "export OMPI_MCA_pml=ob1 GLOO_X=1\n")
    assert look(prefix) == "2 ranks added up 1 MiB, also with what sessions set"


def test_a_launch_that_fails_with_our_parameters_too_says_so(prefix: Path) -> None:
    mpirun(prefix, end="exit 3")
    with pytest.raises(CheckFailed) as failed:
        look(prefix, OMPI_MCA_btl="tcp")
    assert failed.value.cause == "it fails with `-mca pml ob1 -mca btl ^openib` too"
    assert failed.value.remedy.kind == "look"


def test_ranks_with_a_wrong_sum_fail(prefix: Path) -> None:
    mpirun(prefix, end="echo 'rank 0 of 2 has 3'; echo 'rank 1 of 2 has 2'")
    with pytest.raises(CheckFailed, match=r"^`mpirun` ended with exit code 0"):
        look(prefix)


def test_without_any_setting_it_is_the_choice_of_open_mpi(prefix: Path) -> None:
    mpirun(prefix, system="OMPI_MCA_pml=ucx")
    with pytest.raises(CheckFailed) as failed:
        look(prefix)
    assert failed.value.cause == ""
    assert failed.value.remedy == "mpirun -mca pml ob1 -mca btl ^openib …"
