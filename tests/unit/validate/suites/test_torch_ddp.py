"""Test the checks of process groups with a PyTorch and a torchrun that are made up."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from unit.validate import trees
from unit.validate.gpu_machines import Machine, write
from validate.check import FAILED, PASSED, SKIPPED, CheckFailed
from validate.fixtures import Measure, Situation
from validate.probes import collectives, process_group, rank_interfaces
from validate.probes.interpreter import Answer
from validate.probes.training import Imported
from validate.process import Result
from validate.suites import test_torch_ddp as suite
from validate.suites import test_torch_ddp_ranks as ranks_suite

if TYPE_CHECKING:
    from pathlib import Path

TORCH = """
__version__ = "{version}"
class version:
    cuda = None
class _C:
    _GLIBCXX_USE_CXX11_ABI = True
def ones(_):
    return 1
"""
DISTRIBUTED = """
import os
def is_available():
    return {available}
def init_process_group(*_, **__):
    {init}
def get_rank():
    return int(os.environ["RANK"])
def get_world_size():
    return int(os.environ["WORLD_SIZE"])
def all_reduce(_):
    pass
barrier = destroy_process_group = lambda: None
"""
TORCHRUN = """
import os
if any(name in os.environ for name in ("PET_NNODES", "WORLD_SIZE", "MASTER_ADDR")):
    raise SystemExit("it waits for the other machines of a job")
import torch
for rank in range(2):
    print("ddp rank", rank, "of 2 sum", {sum}, "torch", {file})
{end}
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    one = Machine(tmp_path, monkeypatch)
    monkeypatch.setattr(process_group, "TORCHRUN", (sys.executable, str(tmp_path / "torchrun")))
    torch(one)
    torchrun(one)
    return one


def torch(
    machine: Machine, version: str = "2.6.0", init: str = "pass", available: str = "True"
) -> None:
    machine.promise("torch", version)
    write(machine.site, "torch/__init__.py", TORCH.format(version=version))
    text = DISTRIBUTED.format(init=init, available=available)
    write(machine.site, "torch/distributed.py", text)


def torchrun(machine: Machine, total: int = 3, file: str = "torch.__file__", end: str = "") -> None:
    text = TORCHRUN.format(sum=total, file=file, end=end)
    write(machine.root, "torchrun", text)


def outcomes(machine: Machine) -> tuple[str, str]:
    found = machine.findings("torch")
    return found["ddp.init"].outcome, found["ddp.torchrun"].outcome


def test_ranks_that_meet_pass_both_checks(machine: Machine) -> None:
    found = machine.findings("torch")
    assert outcomes(machine) == (PASSED, PASSED)
    assert found["ddp.torchrun"].measured == "rank 0 of 2: sum 3; rank 1 of 2: sum 3"


def test_a_static_run_starts_no_ranks(machine: Machine) -> None:
    assert not {one for one in machine.findings("torch", static=True) if one.startswith("ddp.")}


def test_the_job_that_the_container_belongs_to_is_left_alone(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"PET_NNODES": "2", "WORLD_SIZE": "16", "MASTER_ADDR": "worker-0"}.items():
        monkeypatch.setenv(name, value)
    assert outcomes(machine) == (PASSED, PASSED)


def test_a_torch_without_libuv_fails_where_it_asks_for_it(machine: Machine) -> None:
    end = (
        "raise RuntimeError('use_libuv was requested but PyTorch was build without libuv support')"
    )
    torchrun(machine, end=end)
    one = machine.findings("torch")["ddp.torchrun"]
    assert (one.outcome, one.remedy.split("   #")[0]) == (FAILED, "imagegen build")
    assert one.measured.startswith("RuntimeError: use_libuv was requested")
    torch(machine, init=end)
    found = machine.findings("torch")
    assert found["ddp.init"].outcome == FAILED
    assert found["ddp.init"].remedy.startswith("export USE_LIBUV=0   # ")
    assert (found["ddp.torchrun"].outcome, found["ddp.torchrun"].reason) == (SKIPPED, "blocked-by")


def test_the_error_is_that_of_the_rank_not_that_of_the_launcher(machine: Machine) -> None:
    end = """
import sys
print("[rank0]: Traceback (most recent call last):", file=sys.stderr)
print("[rank0]: AttributeError: 'NoneType' object has no attribute 'get'", file=sys.stderr)
print("torch.distributed.elastic.multiprocessing.errors.ChildFailedError: x", file=sys.stderr)
sys.exit(1)
"""
    torchrun(machine, end=end)
    one = machine.findings("torch")["ddp.torchrun"]
    assert one.measured == "AttributeError: 'NoneType' object has no attribute 'get'"
    assert "Python 3.11" in one.cause
    assert one.remedy.startswith("sed -i ")


def test_a_wrong_sum_and_another_torch_fail(machine: Machine) -> None:
    torchrun(machine, total=2)
    one = machine.findings("torch")["ddp.torchrun"]
    assert (one.outcome, one.measured) == (FAILED, "rank 0 of 2: sum 2; rank 1 of 2: sum 2")
    torchrun(machine, file="'/opt/env/torch/__init__.py'")
    one = machine.findings("torch")["ddp.torchrun"]
    assert (one.outcome, one.measured) == (FAILED, "its ranks import /opt/env/torch/__init__.py")


def test_an_interface_that_is_not_there_is_named(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "eth7")
    end = "raise RuntimeError('ifa != nullptr. Unable to find address for: eth7')"
    torchrun(machine, end=end)
    torch(machine, init=end)
    one = machine.findings("torch")["ddp.init"]
    assert one.cause.startswith("GLOO_SOCKET_IFNAME=eth7 names no interface")


def test_a_torchrun_that_is_gone_is_missed_from_1_10_on(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_group, "TORCHRUN", ("torchrun",))
    found = machine.findings("torch")
    assert (found["ddp.init"].outcome, found["ddp.init"].measured) == (PASSED, "rank 0 of 1: sum 1")
    assert "torchrun: No such file" in found["ddp.torchrun"].measured
    torch(machine, "1.9.1+cu111")
    assert outcomes(machine) == (PASSED, SKIPPED)


def test_a_torch_without_distributed_fails(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_group, "TORCHRUN", ("torchrun",))
    torch(machine, available="False")
    one = machine.findings("torch")["ddp.init"]
    assert (one.outcome, one.cause) == (
        FAILED,
        "this build of PyTorch leaves torch.distributed out",
    )


def interface(machine: Machine, name: str, state: str = "up") -> None:
    write(machine.root, f"/sys/class/net/{name}/operstate", f"{state}\n")


@pytest.mark.parametrize(
    ("setting", "value", "outcome"),
    [
        ("GLOO_SOCKET_IFNAME", "eth0", PASSED),
        ("GLOO_SOCKET_IFNAME", "eth", FAILED),
        ("GLOO_SOCKET_IFNAME", "eth0,ib0", FAILED),
        ("GLOO_SOCKET_IFNAME", "eth1", FAILED),
        ("NCCL_SOCKET_IFNAME", "eth", PASSED),
        ("NCCL_SOCKET_IFNAME", "=eth", FAILED),
        ("NCCL_SOCKET_IFNAME", "=eth1", FAILED),
        ("NCCL_SOCKET_IFNAME", "^lo,docker0", PASSED),
        ("NCCL_SOCKET_IFNAME", "^lo,eth", FAILED),
    ],
)
def test_an_interface_that_is_named_has_to_be_there_and_up(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, setting: str, value: str, outcome: str
) -> None:
    for name, state in {"eth0": "up", "eth1": "down", "lo": "unknown"}.items():
        interface(machine, name, state)
    monkeypatch.setenv(setting, value)
    found = machine.findings("torch")
    one = found["ddp.iface"]
    assert one.outcome == outcome
    assert f"{setting}={value}" in one.measured
    if outcome == FAILED:
        assert one.remedy.startswith(f"unset {setting}; ")
        assert (found["ddp.init"].outcome, found["ddp.init"].measured) == (SKIPPED, "ddp.iface")


@pytest.mark.parametrize(
    ("setting", "value", "remedy"),
    [
        ("GLOO_SOCKET_IFNAME", "eth0 ", "eth0"),
        ("GLOO_SOCKET_IFNAME", "lo, eth0", "lo,eth0"),
        ("GLOO_SOCKET_IFNAME", ",eth0", "eth0"),
        ("GLOO_SOCKET_IFNAME", "eth0,,lo", "eth0,lo"),
        ("GLOO_SOCKET_IFNAME", " ,", ""),
        ("GLOO_SOCKET_IFNAME", " ens3", ""),
        ("NCCL_SOCKET_IFNAME", " eth0", "eth0"),
        ("NCCL_SOCKET_IFNAME", "= eth0", "=eth0"),
    ],
)
def test_a_blank_counts_in_the_name_of_an_interface(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, setting: str, value: str, remedy: str
) -> None:
    for name in ("eth0", "lo"):
        interface(machine, name)
    monkeypatch.setenv(setting, value)
    one = machine.findings("torch")["ddp.iface"]
    assert one.outcome == FAILED
    start = f"export {setting}={remedy}   #" if remedy else f"unset {setting}; "
    assert one.remedy.startswith(start)
    assert ("a blank counts" in one.cause) == bool(remedy)


def test_gloo_passes_over_a_last_comma(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    interface(machine, "eth0")
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "eth0,")
    assert machine.findings("torch")["ddp.iface"].outcome == PASSED


def test_the_label_of_an_address_is_an_interface_for_gloo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_interfaces, "has_ipv4", lambda name: name == "eth0:1")
    asked = ["eth0:1", "eth0:2", "ens3:1", "eth0"]
    assert rank_interfaces.with_labels(["eth0", "lo"], asked) == ["eth0", "lo", "eth0:1"]
    assert rank_interfaces.with_labels(["eth0"], asked, "/tree") == ["eth0"]


def seen(peer: str, there: str, *reached: str, code: int = 0) -> rank_interfaces.PeerView:
    return rank_interfaces.PeerView(
        peer, Result(["ssh"], code, "", ""), tuple(there.split()), reached
    )


@pytest.mark.parametrize(
    ("env", "peer", "says"),
    [
        ({"GLOO_SOCKET_IFNAME": "eth0"}, seen("b", "eth0 lo", "10.0.0.1"), ""),
        ({"GLOO_SOCKET_IFNAME": "eth0:1"}, seen("b", "eth0 lo", "10.0.0.1"), ""),
        ({"GLOO_SOCKET_IFNAME": "eth0"}, seen("b", "", code=255), ""),
        ({"GLOO_SOCKET_IFNAME": "eth0"}, seen("b", "ens3 lo", "10.0.0.1"), "not one on b"),
        (
            {"GLOO_SOCKET_IFNAME": "eth0"},
            seen("b", "eth0 lo"),
            "b does not reach this host at eth0",
        ),
        (
            {"NCCL_SOCKET_IFNAME": "eth"},
            seen("b", "eth0 lo", "10.0.0.9"),
            "reach this host at eth0",
        ),
        ({}, seen("b", "eth0 lo", "10.0.0.9"), ""),
        ({}, seen("b", "eth0 lo"), "the name of this host: b does not reach this host at 10.0.0.9"),
    ],
)
def test_an_interface_has_to_lead_to_the_peers(
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    env: dict[str, str],
    peer: rank_interfaces.PeerView,
    says: str,
) -> None:
    interface(machine, "eth0")
    monkeypatch.setattr(rank_interfaces, "address_of", lambda _: "10.0.0.1")
    monkeypatch.setattr(rank_interfaces, "own_address", lambda: "10.0.0.9")
    monkeypatch.setattr(rank_interfaces, "towards", lambda _: "ens5")
    labels = [one for one in env.values() if ":" in one]
    monkeypatch.setattr(rank_interfaces, "with_labels", lambda there, *_: [*there, *labels])
    monkeypatch.setattr(rank_interfaces, "seen_from", lambda *_: [peer])
    recipe = trees.expected(machine.root, components=machine.components)
    image = Situation(recipe, env, str(machine.root), {}, peers=("b",))
    measure = Measure()
    if not says:
        suite.test_iface(image, measure)
        return
    with pytest.raises(CheckFailed) as failed:
        suite.test_iface(image, measure)
    assert says in str(failed.value)
    assert failed.value.remedy.startswith("export ")
    assert "=ens5 " in failed.value.remedy


@pytest.mark.parametrize(
    ("name", "host", "remedy"),
    [("", "localhost", "127.0.0.1 localhost"), ("MASTER_ADDR", "worker-0", "--add-host worker-0:")],
)
def test_a_host_where_the_ranks_meet_has_to_have_an_address(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, name: str, host: str, remedy: str
) -> None:
    monkeypatch.setattr(process_group, "unresolved", lambda _: [(name, host)])
    found = process_group.Group((), (), "")
    monkeypatch.setattr(process_group, "by_torchrun", lambda _: found)
    memory = {"training": Imported(Answer({"version": "2.6.0"}, ""), Answer({}, ""))}
    image = Situation(trees.expected(machine.root), {}, "/", memory)
    with pytest.raises(CheckFailed) as failed:
        suite.test_torchrun(image, Measure())
    assert host in str(failed.value)
    assert remedy in failed.value.remedy


BACKENDS = """
is_gloo_available = lambda: {gloo}
is_nccl_available = lambda: {nccl}
"""


@pytest.mark.parametrize(
    ("device", "gloo", "nccl", "outcome", "measured"),
    [
        ("cpu", True, False, PASSED, "gloo"),
        ("gpu", True, True, PASSED, "gloo, nccl"),
        ("gpu", True, False, FAILED, "no nccl, it has gloo"),
        ("cpu", False, False, FAILED, "no gloo, it has no backend at all"),
    ],
)
def test_the_backends_that_a_device_needs(
    machine: Machine, device: str, gloo: bool, nccl: bool, outcome: str, measured: str
) -> None:
    machine.device = device
    file = machine.site / "torch/distributed.py"
    file.write_text(file.read_text() + BACKENDS.format(gloo=gloo, nccl=nccl))
    one = machine.findings("torch")["ddp.backend"]
    assert (one.outcome, one.measured) == (outcome, measured)


def exchanged(monkeypatch: pytest.MonkeyPatch, *found: collectives.Exchange) -> list[Any]:
    asked: list[Any] = []
    answers = iter(found)

    def answer(_: Situation, backend: str, ranks: int) -> collectives.Exchange:
        asked.append((backend, ranks))
        return next(answers)

    monkeypatch.setattr(collectives, "on_this_host", answer)
    return asked


def test_what_two_ranks_exchange_is_measured(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = exchanged(monkeypatch, collectives.Exchange("gloo: 9 exchanges right", ""))
    one = machine.findings("torch")["ddp.2rank"]
    assert (one.outcome, one.measured) == (PASSED, "gloo: 9 exchanges right")
    assert asked == [("gloo", 2)]


def test_wrong_numbers_fail(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = "rank 1: all_reduce int64 x7: 4 at 0, not 3"
    exchanged(monkeypatch, collectives.Exchange("", problem))
    one = machine.findings("torch")["ddp.2rank"]
    assert (one.outcome, one.measured) == (FAILED, f"gloo: {problem}")
    assert "gives ranks wrong numbers" in one.cause


def test_ranks_that_torchrun_cannot_join_either_are_reported_once(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchanged(monkeypatch, collectives.Exchange("", "RuntimeError: no way"))
    torchrun(machine, end="raise RuntimeError('no way')")
    found = machine.findings("torch")
    assert found["ddp.torchrun"].outcome == FAILED
    one = found["ddp.2rank"]
    assert (one.outcome, one.reason, one.measured) == (SKIPPED, "blocked-by", "ddp.torchrun")


@pytest.mark.parametrize(("gpus", "ranks"), [(1, 1), (8, 2)])
def test_gpus_exchange_over_nccl_too(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, gpus: int, ranks: int
) -> None:
    right = collectives.Exchange("right", "")
    asked = exchanged(monkeypatch, right, right)
    facts = {"version": "2.6.0", "gpus": gpus, "backends": ["gloo", "nccl"]}
    memory = {"training": Imported(Answer(facts, ""), Answer({}, ""))}
    image = Situation(trees.expected(machine.root), {}, str(machine.root), memory)
    ranks_suite.test_2rank(image, Measure())
    assert asked == [("gloo", 2), ("nccl", ranks)]
