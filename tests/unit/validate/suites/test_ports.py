"""Test the port at which ranks meet, on made-up machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unit.validate.gpu_machines import Machine, write
from validate.check import FAILED, PASSED, WARNED

if TYPE_CHECKING:
    from pathlib import Path

    from validate.check import CheckResult

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue\n"
LISTENS = "   0: 00000000:{:04X} 00000000:0000 0A 00000000:00000000\n"
CONNECTED = "   1: 0100007F:{:04X} 0100007F:01BB 01 00000000:00000000\n"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    for name in ("MASTER_PORT", "RANK", "NODE_RANK", "GROUP_RANK"):
        monkeypatch.delenv(name, raising=False)
    write(tmp_path, "/proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n")
    return Machine(tmp_path, monkeypatch)


def found(machine: Machine, table: str = "tcp", line: str = "", port: int = 0) -> CheckResult:
    write(machine.root, f"/proc/net/{table}", HEAD + line.format(port))
    return machine.findings("limits")["lim.ports"]


def test_a_free_port_passes(machine: Machine) -> None:
    one = found(machine, line=CONNECTED, port=29500)
    assert (one.outcome, one.measured) == (
        PASSED, "29500 is free, 32768 to 60999 for connections",
    )  # fmt: skip


@pytest.mark.parametrize("table", ["tcp", "tcp6"])
def test_a_taken_port_warns_and_fails_where_the_launch_names_it(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    assert found(machine, table, LISTENS, 29500).outcome == WARNED
    monkeypatch.setenv("MASTER_PORT", "23456")
    assert found(machine, table, LISTENS, 29500).outcome == PASSED
    one = found(machine, table, LISTENS, 23456)
    assert (one.outcome, one.measured) == (FAILED, "somebody listens on 23456 already")
    assert one.action == "relaunch"


@pytest.mark.parametrize("name", ["RANK", "NODE_RANK", "GROUP_RANK"])
def test_ranks_that_meet_elsewhere_need_no_port_here(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("MASTER_PORT", "29500")
    monkeypatch.setenv(name, "3")
    assert found(machine, line=LISTENS, port=29500).outcome == PASSED


def test_what_is_no_port_fails(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASTER_PORT", "any")
    assert found(machine).measured == "MASTER_PORT=any is no number"


def test_a_short_range_of_ports_warns(machine: Machine) -> None:
    write(machine.root, "/proc/sys/net/ipv4/ip_local_port_range", "50000 50999\n")
    one = found(machine)
    assert (one.outcome, one.action) == (WARNED, "drain")
    assert one.measured == "50000 to 50999: 1000 ports for connections, 10000 are good"
