"""Test data through the RDMA ports of made-up nodes: its rate, and the errors counted."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from unit.validate import nodes
from unit.validate.gpu_machines import Machine, write
from unit.validate.suites.test_rdma_ports import stack
from unit.validate.suites.test_whole_machines import RDMA
from validate.check import PASSED, SKIPPED, WARNED
from validate.probes import fabric
from validate.probes.sysfs import Port

if TYPE_CHECKING:
    from pathlib import Path

ROW = "1048576 1000 {0} {0} 0.04"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Make an H100 node with InfiniBand, and a run that asks to move data."""
    one = Machine(tmp_path, monkeypatch)
    one.components["rdma"] = RDMA
    one.loopback = True
    stack(one, 8)
    nodes.h100_infiniband(one.root)
    monkeypatch.setenv("PATH", f"{one.root}/bin", prepend=":")
    program(one, "sleep", ":")
    perftest(one)
    return one


def program(machine: Machine, name: str, text: str) -> None:
    write(machine.root, f"bin/{name}", f"#!/bin/sh\n{text}\n").chmod(0o755)


def perftest(machine: Machine, **special: str) -> None:
    """Write an ib_write_bw that measures 390.5 Gb/s, but does something else on some devices."""
    cases = "".join(f"{device}) {text};; " for device, text in special.items())
    program(machine, "ib_write_bw", f'case "$2" in {cases}*) echo {ROW.format(390.5)};; esac')


def port(number: int) -> str:
    return f"/sys/class/infiniband/mlx5_{number}/ports/1"


def test_data_moves_only_where_it_is_asked_for(machine: Machine) -> None:
    machine.loopback = False
    assert {"rdma.loopback", "rdma.counters"}.isdisjoint(machine.findings("rdma"))


def test_data_that_moves_at_the_rate_of_every_port_is_well(machine: Machine) -> None:
    found = machine.findings("rdma")
    one = found["rdma.loopback"]
    assert one.outcome == PASSED
    assert one.measured.startswith("mlx5_0 390.5 of 400 Gb/s, mlx5_1 ")
    one = found["rdma.counters"]
    assert (one.outcome, one.measured) == (PASSED, "40 counters, none went up")


def test_roce_ports_without_an_address_table_rest(machine: Machine) -> None:
    write(machine.root, f"{port(0)}/link_layer", "Ethernet\n")
    shutil.rmtree(f"{machine.root}{port(0)}/gid_attrs")
    one = machine.findings("rdma")["rdma.loopback"]
    assert (one.reason, one.measured) == ("blocked-by", "rdma.netns")


@pytest.mark.parametrize(
    ("gigabits", "outcome"), [(320.0, PASSED), (319.9, WARNED), (98.1, WARNED)]
)
def test_a_port_below_its_rate_warns_with_the_device(
    machine: Machine, gigabits: float, outcome: str
) -> None:
    perftest(machine, mlx5_3=f"echo {ROW.format(gigabits)}")
    found = machine.findings("rdma")
    one = found["rdma.loopback"]
    assert one.outcome == outcome
    if outcome == WARNED:
        assert one.measured == f"mlx5_3 {gigabits} of 400 Gb/s"
        assert one.cause == "the link, or its PCIe slot, is narrow"
        assert one.look.startswith("mlxlink -d mlx5_3; lspci ")
        assert found["rdma.counters"].outcome == PASSED


def test_a_device_that_moves_nothing_warns_with_its_words(machine: Machine) -> None:
    perftest(machine, mlx5_5="echo Couldn\\'t allocate MR >&2; exit 1")
    one = machine.findings("rdma")["rdma.loopback"]
    said = "mlx5_5: `sh` ended with exit code 1: Couldn't allocate MR"
    assert (one.outcome, one.measured) == (WARNED, said)
    assert one.cause == "data does not move through the device"


def counting(machine: Machine, number: int, counter: str, value: int) -> str:
    """Return what ib_write_bw does: it moves the data well and sets a counter of the port."""
    return f"echo {value} > {machine.root}{port(number)}/{counter}; echo {ROW.format(390.5)}"


def test_errors_that_are_counted_while_data_moves_warn(machine: Machine) -> None:
    write(machine.root, f"{port(4)}/counters/link_downed", "9\n")  # from before: ignored
    write(machine.root, f"{port(2)}/counters/symbol_error", "4\n")
    perftest(
        machine,
        mlx5_2=counting(machine, 2, "counters/symbol_error", 11),
        mlx5_6=counting(machine, 6, "hw_counters/out_of_sequence", 2),
    )
    found = machine.findings("rdma")
    assert found["rdma.loopback"].outcome == PASSED
    one = found["rdma.counters"]
    rise = "mlx5_2/1 symbol_error +7, mlx5_6/1 out_of_sequence +2"
    assert (one.outcome, one.measured) == (WARNED, rise)
    assert one.look == "ibqueryerrors"


def test_a_driver_that_counts_nothing_and_an_image_without_perftest_rest(machine: Machine) -> None:
    for number in range(8):
        for folder in ("counters", "hw_counters"):
            shutil.rmtree(f"{machine.root}{port(number)}/{folder}")
    one = machine.findings("rdma")["rdma.counters"]
    assert (one.outcome, one.reason) == (SKIPPED, "not-installed")
    assert one.measured.startswith("the driver counts nothing: mlx5_0, ")
    (machine.root / "bin/ib_write_bw").unlink()
    found = machine.findings("rdma")
    both = [found[name] for name in ("rdma.loopback", "rdma.counters")]
    assert {(one.reason, one.measured) for one in both} == {
        ("not-installed", "there is no ib_write_bw")
    }


def test_the_loopback_is_started_on_the_port_with_its_row() -> None:
    one = Port("mlx5_1", "1", "4: ACTIVE", "100 Gb/sec (4X EDR)", "Ethernet")
    assert " -d mlx5_1 -i 1 -F --report_gbits " in fabric.loopback_script(one, 3)
    assert fabric.loopback_script(one, 3).count("-x 3") == 2
    assert "-x" not in fabric.loopback_script(one, None)
    assert fabric.gigabits(one.rate) == 100
    table = (
        " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
        " 1048576    1000             92.39              92.30     \t\t   0.011\n"
    )
    assert fabric.parse_bandwidth(table) == 92.3
    assert fabric.parse_bandwidth("Couldn't connect") == 0


def test_counters_are_read_by_port(machine: Machine) -> None:
    write(machine.root, f"{port(2)}/counters/link_downed", "4\n")
    found = fabric.errors(str(machine.root))
    assert found["mlx5_2/1 link_downed"] == 4
    assert len(found) == 8 * 5
