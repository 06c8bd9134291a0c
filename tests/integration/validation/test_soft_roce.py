"""Test verbs for real: an image on a virtual machine with a Soft-RoCE device, intact and broken."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from command_line import Ended, command_line_in

from imagegen.engine.images import local_images
from imagegen.validation import soft_roce

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.engine.client import Engine

SECONDS = 500

# Each fault is made and undone, so that only one exists at a time.
FAULTS = {
    "provider": (
        "mkdir /gone && mv /usr/lib/*/libibverbs/librxe-*.so /gone",
        "mv /gone/librxe-*.so /usr/lib/*/libibverbs/",
    ),
    "device": (
        "mv /dev/infiniband/uverbs0 /dev/uverbs0-gone",
        "mv /dev/uverbs0-gone /dev/infiniband/uverbs0",
    ),
    "port": ("ip link set eth0 down", "ip link set eth0 up"),
}
FAILS = {"provider": "rdma.provider", "device": "rdma.uverbs", "port": "rdma.port"}


@dataclass(frozen=True)
class Machines:
    """Hold the result for the image as it is, and those of `validate` with each fault."""

    whole: Ended
    faults: dict[str, tuple[int, str]]


def faults_script(engine: Engine, ref: str) -> str:
    image = local_images.find(engine, ref)
    assert image is not None
    lines = soft_roce.setting(engine, image)
    for name, (break_it, mend_it) in FAULTS.items():
        look = "timeout 300 validate --only rdma --require rdma --json /tmp/report.json"
        lines += [break_it, look, f"answer {name} $? /tmp/report.json", mend_it]
    return "\n".join([*lines, ""])


@pytest.fixture(scope="module")
def machines(engine: Engine, cpu_image: str, tmp_path_factory: pytest.TempPathFactory) -> Machines:
    """Run two machines at a time, one of them with one fault after the other."""
    command = command_line_in(tmp_path_factory.mktemp("soft-roce"))
    cache: Path = command.state / "guest"
    arguments = ("validate", "--soft-roce", "--format", "json", cpu_image)
    with ThreadPoolExecutor(1) as pool:
        whole = pool.submit(command, *arguments, seconds=SECONDS)
        script = faults_script(engine, cpu_image)
        guest = soft_roce.boot_image(engine, cpu_image, script, cache, SECONDS, lambda _: None)
        assert not guest.powered.timed_out
        return Machines(whole.result(), dict(guest.told))


def outcomes(report: dict[str, Any]) -> dict[str, str]:
    return {check["id"]: check["outcome"] for check in report["checks"]}


def test_an_image_moves_data_through_a_verbs_device(machines: Machines) -> None:
    (row,) = machines.whole.result
    assert (row["passed"], row["tier"]) == (True, "soft-roce")
    found = outcomes(row["report"])
    passed = {name for name, outcome in found.items() if outcome == "passed"}
    assert passed >= {
        *("rdma.libs", "rdma.provider", "rdma.pabi", "rdma.hw", "rdma.uverbs", "rdma.devinfo"),
        *("rdma.port", "rdma.gid", "lim.memlock", "rdma.pingpong", "rdma.write-bw"),
    }
    assert not {"failed", "error"} & {*found.values()}
    measured = {check["id"]: check["measured"] for check in row["report"]["checks"]}
    assert measured["rdma.hw"] == "rxe0"
    assert measured["lim.memlock"].startswith("unlimited")
    assert "100 iters in" in measured["rdma.pingpong"]
    assert measured["rdma.write-bw"].startswith("50 x 65536 bytes")


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_broken_in_the_machine_is_named(machines: Machines, fault: str) -> None:
    code, text = machines.faults[fault]
    report = json.loads(text)
    assert code == 1
    failed = [name for name, outcome in outcomes(report).items() if outcome == "failed"]
    assert failed == [FAILS[fault]]
    (check,) = (one for one in report["checks"] if one["id"] == FAILS[fault])
    assert check["cause"]
    assert check["remedy"]
