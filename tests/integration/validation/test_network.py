"""Test `validate --bandwidth` and `--find-slow` on four hosts, with faults made on purpose.

`tc` and `nsenter` of this machine slow an interface of a container down: images have neither.
"""

from __future__ import annotations

import json
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from one_job import one_job
from running_image import said

if TYPE_CHECKING:
    from collections.abc import Iterator

    from imagegen.engine.client import Engine
    from imagegen.engine.containers.containers import Container

NAMES = ("north", "east", "south", "west")
PEERS = ",".join(NAMES)
SLOW = "root tbf rate 100mbit burst 32kbit latency 400ms"
COLLECTIVES = "/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py"
WRONG = """

_right = all_reduce
def all_reduce(tensor, *rest, **more):
    done = _right(tensor, *rest, **more)
    tensor[-1:] += 1
    return done
"""


@pytest.fixture(scope="module")
def hosts(engine: Engine, cpu_family: dict[str, str]) -> Iterator[list[Container]]:
    with one_job(engine, cpu_family["debian12-none"], NAMES) as containers:
        yield containers


@contextmanager
def slowed(*containers: Container) -> Iterator[None]:
    """Give the interface of containers 100 Mbit/s for a while."""
    slow: list[list[str]] = []
    try:
        for one in containers:
            process = one.engine.api.inspect_container(one.id)["State"]["Pid"]
            inside = ["nsenter", "--target", str(process), "--net", "tc", "qdisc"]
            subprocess.run([*inside, "add", "dev", "eth0", *SLOW.split()], check=True)
            slow.append([*inside, "del", "dev", "eth0", "root"])
        yield
    finally:
        for command in slow:
            subprocess.run(command, check=True)


def measured(container: Container, code: int, *options: str) -> dict[str, Any]:
    """Return the report of a measurement; its checks by id."""
    end = container.exec(["validate", *options, "--json", "-"], 300)
    assert end.code == code, end.out + end.err
    report: dict[str, Any] = json.loads(end.out)
    report["checks"] = {one["id"]: one for one in report["checks"]}
    return report


@pytest.mark.parametrize("over", ["gloo", pytest.param("mpi", marks=pytest.mark.long)])
def test_the_host_with_a_slow_interface_is_named(hosts: list[Container], over: str) -> None:
    with slowed(hosts[2]):
        report = measured(hosts[0], 1, "--peers", PEERS, "--find-slow", "--over", over)
    assert [one["host"] for one in report["find_slow"]["slow_hosts"]] == ["south"]
    assert report["find_slow"]["slow_links"] == []
    assert report["find_slow"]["transport"] == over
    found = report["checks"]["net.hosts"]
    assert found["measured"].startswith("south is slow with everyone")
    assert found["remedy"] == "start the job without south, and have its network repaired"
    assert report["checks"]["net.links"]["outcome"] == "passed"


def test_a_dead_sshd_and_an_unknown_name_beside_a_slow_host(hosts: list[Container]) -> None:
    said(hosts[3], "sh", "-c", "kill $(pgrep -o -x sshd)")
    names = f"{PEERS},nowhere"
    try:
        with slowed(hosts[1]):
            report = measured(hosts[0], 1, "--peers", names, "--find-slow")
    finally:
        said(hosts[3], "sh", "-c", "/usr/sbin/sshd -p 2222 || /usr/sbin/sshd")
    login = report["checks"]["net.login"]
    assert "west: the host is there, and no sshd answers" in login["cause"]
    assert "nowhere: the name leads to no address" in login["cause"]
    assert sorted(report["find_slow"]["lost"]) == ["nowhere", "west"]
    assert [one["host"] for one in report["find_slow"]["slow_hosts"]] == ["east"]


@pytest.mark.long
def test_nobody_is_blamed_where_all_are_slow(hosts: list[Container]) -> None:
    with slowed(*hosts):
        report = measured(hosts[0], 0, "--peers", PEERS, "--find-slow")
    assert report["checks"]["net.hosts"]["outcome"] == "passed"
    links = report["checks"]["net.links"]
    assert links["outcome"] == "warned"
    assert "no host or link differs" in links["measured"]


@pytest.mark.parametrize("over", ["gloo", pytest.param("mpi", marks=pytest.mark.long)])
def test_a_sweep_over_two_hosts(hosts: list[Container], over: str) -> None:
    options = ("--bandwidth", "--sizes", "8..64K", "--over", over)
    report = measured(hosts[0], 0, "--peers", "north,east", *options)
    sweep = report["bandwidth"]
    assert (sweep["hosts"], sweep["ranks"]) == (["north", "east"], [1, 1])
    assert [row["bytes"] for row in sweep["rows"]] == [8 << n for n in range(14)]
    assert all(row["wrong"] == 0 and row["busbw_GB_s"] > 0 for row in sweep["rows"])
    assert {one["outcome"] for one in report["checks"].values()} == {"passed", "skipped"}


def test_a_reference_of_this_machine_and_of_another(hosts: list[Container]) -> None:
    options = ("--bandwidth", "--sizes", "1M,4M", "--ranks", "2")
    path = "/tmp/reference.json"
    measured(hosts[0], 0, *options, "--save-reference", path)
    kept = json.loads(said(hosts[0], "cat", path))
    for row in kept["bandwidth"]["rows"]:
        row["busbw_GB_s"] = 1000.0
    hosts[0].write_file(path, json.dumps(kept).encode())
    report = measured(hosts[0], 0, *options, "--reference", path)
    assert report["checks"]["net.reference"]["outcome"] == "warned"
    assert report["bandwidth"]["slower"] == [1 << 20, 4 << 20]
    kept["bandwidth"]["machines"] = ["another"]
    hosts[0].write_file(path, json.dumps(kept).encode())
    end = hosts[0].exec(["validate", *options, "--reference", path], 120)
    assert end.code == 2
    assert "machines: another there" in end.err


def test_a_host_with_wrong_sums_is_named(hosts: list[Container]) -> None:
    right = said(hosts[2], "cat", COLLECTIVES)
    hosts[2].write_file(COLLECTIVES, (right + WRONG).encode())
    try:
        swept = measured(hosts[0], 1, "--peers", "north,south", "--bandwidth", "--sizes", "8,1K")
        found = measured(hosts[0], 1, "--peers", PEERS, "--find-slow")
    finally:
        hosts[2].write_file(COLLECTIVES, right.encode())
    assert swept["bandwidth"]["wrong"] == 2
    assert "2 on south" in swept["checks"]["net.sums"]["measured"]
    assert found["checks"]["net.hosts"]["measured"].startswith("south works with nobody")
