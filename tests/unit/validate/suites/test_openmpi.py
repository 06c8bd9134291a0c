"""Test Open MPI and Horovod: ranks that do not find each other, and the interfaces they use."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from unit import conftest
from unit.validate import nodes, trees
from unit.validate.gpu_machines import Machine, compiled, write
from validate.check import FAILED, PASSED, SKIPPED, WARNED, CheckFailed
from validate.fixtures import Measure, Situation
from validate.probes import aside
from validate.probes import horovod as probes_of_horovod
from validate.probes.interpreter import Answer
from validate.suites import test_horovod

if TYPE_CHECKING:
    from pathlib import Path

# Runs what comes after mpirun's own options, once for each of two ranks.
MPIRUN = """#!/bin/sh
until [ "$1" = "{python}" ]; do shift; done
OMPI_COMM_WORLD_RANK=0 "$@" & first=$!
OMPI_COMM_WORLD_RANK=1 "$@"; second=$?
wait $first || exit 1
exit $second
"""
TORCH = """
class version:
    cuda = None
class _C:
    pass
__version__ = "2.4.1"
"""
HOROVOD = """
import os
mpi_built = lambda: True
nccl_built = gloo_built = lambda: False
def init():
    {init}
rank = lambda: {rank}
size = lambda: {size}
"""
OWN_RANK = 'int(os.environ["OMPI_COMM_WORLD_RANK"])'

OMPI_INFO = """#!/bin/sh
case "$*" in *--path*) echo path:prefix:{prefix};; *) {all}; echo path:prefix:{prefix};; esac
"""
SONAME = "-Wl,-soname,libmpi.so.40"
ROUTE = "{}\t{}\t00000000\t0003\t0\t0\t0\t{}\t0\t0\t0\n"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Make an image with Open MPI in a folder of its own, PyTorch and Horovod."""
    monkeypatch.delenv("OPAL_PREFIX", raising=False)
    one = Machine(tmp_path, monkeypatch)
    one.promise("openmpi", "4.1.4", prefix=f"{tmp_path}/openmpi")
    one.promise("torch", "2.4.1")
    one.promise("horovod", "0.28.1")
    write(one.site, "torch/__init__.py", TORCH)
    write(one.site, "horovod/__init__.py", "__version__ = '0.28.1'\n")
    write(one.site, "horovod/torch/mpi_lib_v2.py")
    metadata = "Metadata-Version: 2.1\nName: horovod\nVersion: 0.28.1\n"
    write(one.site, "horovod-0.28.1.dist-info/METADATA", metadata)
    program(one, monkeypatch, "mpirun", MPIRUN.format(python=sys.executable))
    allowed = (*conftest.HARMLESS, "/sbin/ldconfig", "ldd")
    monkeypatch.setattr(conftest, "HARMLESS", allowed)
    return one


def program(machine: Machine, monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    """Write a program of Open MPI."""
    path = write(machine.root, f"openmpi/bin/{name}", text)
    path.chmod(0o755)
    monkeypatch.setattr(conftest, "HARMLESS", (*conftest.HARMLESS, str(path)))


def horovod(machine: Machine, *, init: str = "pass", rank: str = OWN_RANK, size: int = 2) -> None:
    text = HOROVOD.format(init=init, rank=rank, size=size)
    write(machine.site, "horovod/torch/__init__.py", text)


def test_two_ranks_that_find_each_other_pass(machine: Machine) -> None:
    horovod(machine)
    one = machine.findings("horovod")["hvd.size"]
    assert (one.outcome, one.measured) == (PASSED, "ranks 0 and 1 of 2")


def test_ranks_that_believe_to_be_alone_fail(machine: Machine) -> None:
    horovod(machine, rank="0", size=1)
    found = machine.findings("horovod")
    assert [name for name, one in found.items() if one.outcome == FAILED] == ["hvd.size"]
    one = found["hvd.size"]
    assert one.measured == "the ranks call themselves 0 of 1, 0 of 1"
    assert one.cause.endswith("so each rank believes it is alone")


def test_ranks_that_do_not_come_up_fail_with_their_words(machine: Machine) -> None:
    horovod(machine, init="raise SystemExit('opal_init failed')")
    one = machine.findings("horovod")["hvd.size"]
    said = "`mpirun` ended with exit code 1: opal_init failed"
    assert (one.outcome, one.measured) == (FAILED, said)
    assert one.cause == "the two ranks did not come up"


def test_ranks_that_say_nothing_fail_in_words(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    horovod(machine)
    program(machine, monkeypatch, "mpirun", "#!/bin/sh\n")
    one = machine.findings("horovod")["hvd.size"]
    assert (one.outcome, one.measured) == (FAILED, "no rank printed which one it is")
    assert one.cause.startswith("mpirun did not start them")


def mpi_in(machine: Machine, folder: str) -> tuple[str, ...]:
    """Make a libmpi in a folder, and libraries there that are linked to it."""
    library = compiled(machine.root, f"{folder}/libmpi.so.40", f"int x; /* {folder} */", SONAME)
    return "-nostdlib", "-Wl,--no-as-needed", str(library), f"-Wl,-rpath,{library.parent}"


def test_horovod_that_loads_another_mpi_than_the_launcher_s_fails(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = mpi_in(machine, "openmpi/lib"), mpi_in(machine, "other/lib")
    compiled(machine.root, "openmpi/bin/ompi_info", "int launcher;", *own)
    extension = compiled(machine.root, "mpi_lib_v2.so", "int horovod;", *own)
    answers = {"PyTorch": Answer({"library": str(extension)}, "")}
    monkeypatch.setattr(probes_of_horovod, "answers", lambda _: answers)
    components = {"openmpi": {"version": "4.1.4", "facts": {"prefix": f"{machine.root}/openmpi"}}}
    recipe = trees.expected(machine.root, components=components)
    image, measure = Situation(recipe, dict(os.environ), str(machine.root), {}), Measure()
    test_horovod.test_link(image, measure)
    assert measure.text == f"libmpi.so.40 is {machine.root}/openmpi/lib/libmpi.so.40"

    compiled(machine.root, "mpi_lib_v2.so", "int horovod;", *other)
    with pytest.raises(CheckFailed) as failed:
        test_horovod.test_link(image, measure)
    assert str(failed.value) == (
        f"the launcher uses {machine.root}/openmpi/lib/libmpi.so.40, "
        f"Horovod would load {machine.root}/other/lib/libmpi.so.40"
    )

    (machine.root / "other/lib/libmpi.so.40").unlink()
    with pytest.raises(CheckFailed, match=r"^the loader does not find libmpi\.so\.40$"):
        test_horovod.test_link(image, measure)


def routes(machine: Machine, *rows: str) -> None:
    write(machine.root, "/proc/net/route", "Iface\tDestination\tGateway\n" + "".join(rows))


@pytest.mark.parametrize("setting", ["OMPI_MCA_btl_tcp_if_include", "OMPI_MCA_btl_tcp_if_exclude"])
def test_several_interfaces_warn_where_none_is_chosen(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    nodes.interfaces(machine.root, "docker0", "eth0", "eth1")
    routes(
        machine,
        ROUTE.format("docker0", "000011AC", "0000FFFF"),
        ROUTE.format("eth0", "00000000", "00000000"),
        ROUTE.format("eth1", "000014AC", "0000FFFF"),
    )
    one = machine.findings("openmpi")["mpi.ifs"]
    assert (one.outcome, one.measured) == (WARNED, "3 interfaces are up: docker0, eth0, eth1")
    assert one.remedy == aside.export({"OMPI_MCA_btl_tcp_if_include": "eth0"})
    monkeypatch.setenv(setting, "eth0")
    assert machine.findings("openmpi")["mpi.ifs"].outcome == PASSED


@pytest.mark.parametrize(
    ("value", "outcome"),
    [("ib0", WARNED), ("ib0,eth0", PASSED), ("10.0.0.0/8", PASSED), ("lo", PASSED)],
)
@pytest.mark.parametrize("setting", ["OMPI_MCA_btl_tcp_if_include", "OMPI_MCA_oob_tcp_if_include"])
def test_interfaces_that_a_setting_names_are_there(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, setting: str, value: str, outcome: str
) -> None:
    nodes.interfaces(machine.root, "eth0", "ib0")
    routes(machine, ROUTE.format("eth0", "000011AC", "0000FFFF"))
    monkeypatch.setenv(setting, value)
    one = machine.findings("openmpi")["mpi.ifs"]
    assert one.outcome == outcome
    if outcome == WARNED:
        assert one.measured == f"{setting}=ib0 names no interface that is up: eth0"
        assert one.remedy == aside.unset([setting])


def test_an_interface_without_an_address_is_none_that_mpi_would_try(machine: Machine) -> None:
    nodes.interfaces(machine.root, "eth0", "ib0")
    one = machine.findings("openmpi")["mpi.ifs"]
    assert (one.outcome, one.remedy) == (
        WARNED,
        aside.export({"OMPI_MCA_btl_tcp_if_include": "eth0"}),
    )
    routes(machine, ROUTE.format("eth0", "000011AC", "0000FFFF"))
    one = machine.findings("openmpi")["mpi.ifs"]
    assert (one.outcome, one.measured) == (PASSED, "eth0")


def test_interfaces_of_a_container_without_sys_are_not_judged(machine: Machine) -> None:
    one = machine.findings("openmpi")["mpi.ifs"]
    assert (one.outcome, one.reason) == (SKIPPED, "not-installed")


@pytest.mark.parametrize(
    ("said", "measured"),
    [
        ("echo mca:mpi:base:param:mpi_built_with_cuda_support:value:true", "yes"),
        ("echo a:value:false", "no: Horovod with NCCL does not need it"),
        ("exit 3", "unknown: `ompi_info` ended with exit code 3: it said nothing"),
    ],
)
def test_whether_mpi_knows_the_memory_of_gpus(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, said: str, measured: str
) -> None:
    text = OMPI_INFO.format(prefix=f"{machine.root}/openmpi", all=said)
    program(machine, monkeypatch, "ompi_info", text)
    one = machine.findings("openmpi", static=True)["mpi.cuda"]
    assert (one.outcome, one.measured) == (PASSED, measured)


def test_an_mpi_that_is_not_there_knows_nothing(machine: Machine) -> None:
    (machine.root / "openmpi/bin/mpirun").unlink()
    one = machine.findings("openmpi", static=True)["mpi.cuda"]
    assert (one.reason, one.measured) == ("blocked-by", "mpi.prefix")


HARMLESS = "`Read -1, expected …` in a log is harmless"


@pytest.mark.parametrize(
    ("scope", "bits", "measured"),
    [
        ("", nodes.PLAIN_CAPABILITIES, "ptrace_scope 0"),
        ("1", nodes.ALL_CAPABILITIES, "ptrace_scope 1"),
        (
            "1",
            nodes.PLAIN_CAPABILITIES,
            f"ptrace_scope 1: {HARMLESS}; --cap-add SYS_PTRACE silences it",
        ),
        ("3", nodes.ALL_CAPABILITIES, f"ptrace_scope 3: {HARMLESS}"),
    ],
)
def test_whether_ranks_may_read_one_another_s_memory(
    machine: Machine, scope: str, bits: str, measured: str
) -> None:
    nodes.capabilities(machine.root, bits)
    if scope:
        write(machine.root, "/proc/sys/kernel/yama/ptrace_scope", f"{scope}\n")
    assert machine.findings("openmpi")["mpi.cma"].measured == measured
