"""Test that checks that passed are not run again, and that all others are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import pytest

from imagegen.engine.containers import surroundings
from imagegen.engine.images import local_images
from imagegen.engine.images.local_image import LocalImage
from imagegen.model.validation import ValidationRecord
from imagegen.validation import fingerprint as basis
from imagegen.validation import reuse as passed
from imagegen.validation.in_container import ValidationRequest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from imagegen.engine.client import Engine
    from imagegen.model.validation import Report

ENGINE = cast("Engine", object())
IMAGE = LocalImage("sha256:a", ("cpu:a",), {"io.imagegen.recipe": "of a recipe"}, 1)
WHOLE = ValidationRequest()
HEALTHY = {"os": "passed", "ssh": "passed", "rdma": "no-rdma-hw"}


def check(suite: str, said: str) -> dict[str, Any]:
    ran = said in ("passed", "failed", "warned", "error")
    outcome, reason = (said, "") if ran else ("skipped", said)
    return {"id": f"{suite}.one", "suite": suite, "outcome": outcome, "reason": reason}


@dataclass
class Machine:
    """Hold an image with one check in each suite, a host, and a journal.

    `runs` has the options of each run.
    """

    said: dict[str, str] = field(default_factory=lambda: dict(HEALTHY))
    host: dict[str, str] | None = field(default_factory=lambda: {"kernel": "6.1"})
    past: list[ValidationRecord] = field(default_factory=list)
    runs: list[tuple[str, ...]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    more: dict[str, object] = field(default_factory=dict)

    def launch(
        self, _: Engine, ref: str, request: ValidationRequest, __: Callable[[str], None]
    ) -> ValidationRecord:
        self.runs.append(request.arguments)
        only = basis.only_of(request) or [*self.said]
        checks = [check(suite, said) for suite, said in self.said.items() if suite in only]
        if request.look_into_layers:
            checks.append(check("image", "passed"))
        outcomes = {one["outcome"] for one in checks if one["suite"] != "image"}
        code = 1 if "failed" in outcomes else 3 if self.missing or outcomes == {"skipped"} else 0
        report = {"schema": 1, "image": ref, "checks": checks, "exit_code": code, **self.more}
        report["missing"] = self.missing
        said = cast("Report", report)
        return ValidationRecord(IMAGE.id, ref, request.tier, code == 0, {}, 9.0, said)

    def validate(self, *arguments: str, static: bool = False, again: bool = False) -> list[str]:
        """Return which checks ran now, of all that the record has."""
        request = ValidationRequest(static, arguments)
        record = passed.validate_open(
            ENGINE, "cpu:a", request, lambda _: self.past, self.lines.append, again=again
        )
        self.past.insert(0, record)
        return [one["id"] for one in passed.checks_of(record) if "earlier" not in one]

    @property
    def last(self) -> ValidationRecord:
        return self.past[0]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()
    monkeypatch.setattr(passed, "validate_image", made.launch)
    monkeypatch.setattr(local_images, "find", lambda *_: IMAGE)
    monkeypatch.setattr(basis, "surroundings", lambda _: made.host)
    return made


def test_a_second_run_takes_over_the_first_and_says_so(machine: Machine) -> None:
    assert machine.validate() == ["os.one", "ssh.one", "rdma.one", "image.one"]
    first = machine.last
    assert machine.validate() == []
    assert machine.runs == [()]
    at = cast("dict[str, str]", first.report["basis"])["at"]
    assert machine.lines == [
        f"skipped: passed at {at}, same image, same checks, same host; `--again` runs them"
    ]
    assert machine.last.report["checks"] == [
        {**one, "earlier": at} for one in passed.checks_of(first)
    ]
    assert (machine.last.passed, machine.last.tier, machine.last.seconds) == (True, "full", 0.0)
    assert machine.last.counts == {"passed": 3, "failed": 0, "warned": 0, "skipped": 1, "error": 0}
    assert machine.last.report["skips"] == {"no-rdma-hw": 1}
    assert machine.last.report["exit_code"] == 0
    assert machine.last.report["image"] == "cpu:a"


def test_a_third_run_still_names_the_time_of_the_first(machine: Machine) -> None:
    machine.validate()
    noted = cast("dict[str, str]", machine.last.report["basis"])
    noted["at"] = "2001-01-01T00:00:00+00:00"
    for _ in range(2):
        assert machine.validate() == []
        assert "passed at 2001-01-01T00:00:00+00:00," in machine.lines[-1]


def test_again_runs_everything(machine: Machine) -> None:
    machine.validate()
    assert len(machine.validate(again=True)) == 4
    assert machine.lines == []


@pytest.mark.parametrize("bad", ["failed", "warned", "error", "needs-start", "blocked-by"])
def test_only_what_was_not_well_runs_again(machine: Machine, bad: str) -> None:
    machine.said["ssh"] = bad
    machine.validate()
    before = machine.last
    assert machine.validate() == ["ssh.one"]
    assert machine.runs == [(), ("--only", "ssh")]
    assert "skipped: os, rdma, image passed at " in machine.lines[0]
    ids = ["os.one", "ssh.one", "rdma.one", "image.one"]
    assert [one["id"] for one in passed.checks_of(machine.last)] == ids
    assert (machine.last.passed, machine.last.tier) == (before.passed, "full")


def test_what_is_mended_outside_the_facts_passes_then(machine: Machine) -> None:
    machine.said["ssh"] = "failed"
    machine.validate()
    machine.said["ssh"] = "passed"
    assert machine.validate() == ["ssh.one"]
    assert [one.passed for one in machine.past] == [True, False]
    assert machine.validate() == []


def test_a_check_that_rests_now_has_everything_run(machine: Machine) -> None:
    machine.said["ssh"] = "warned"
    machine.validate()
    machine.said["ssh"] = "not-installed"
    assert len(machine.validate()) == 4
    assert machine.runs == [(), ("--only", "ssh"), ()]
    assert machine.lines[-1] == "other checks rest than before: everything runs"


def test_another_host_another_launch_or_other_code_is_no_pass(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.validate()
    machine.host = {"kernel": "6.2"}
    assert len(machine.validate()) == 4
    labels = {"io.imagegen.contract": '{"caps": ["IPC_LOCK"]}'}
    other = LocalImage(IMAGE.id, IMAGE.tags, labels, 1)
    monkeypatch.setattr(local_images, "find", lambda *_: other)
    assert len(machine.validate()) == 4
    monkeypatch.setattr(basis, "code_digest", lambda: "another")
    assert len(machine.validate()) == 4
    assert machine.validate() == []


def test_a_host_out_of_sight_is_never_the_same(machine: Machine) -> None:
    machine.host = None
    machine.validate()
    assert "basis" not in machine.last.report
    assert len(machine.validate()) == 4


def test_tier_for_tier_and_option_for_option(machine: Machine) -> None:
    machine.validate()
    assert len(machine.validate(static=True)) == 4
    assert len(machine.validate("--profile", "cpu")) == 4
    assert machine.validate(static=True) == []
    assert machine.last.tier == "static"


def test_benchmark_and_loopback_always_run(machine: Machine) -> None:
    for option in ("--benchmark", "--loopback"):
        for _ in range(2):
            assert len(machine.validate(option)) == 4
            assert "basis" not in machine.last.report


def test_a_suite_rests_under_each_of_its_names(machine: Machine) -> None:
    machine.said["openmpi"] = "passed"
    machine.validate()
    assert machine.validate("--only", "mpi") == []
    assert [one["id"] for one in passed.checks_of(machine.last)] == ["openmpi.one", "image.one"]


@pytest.mark.parametrize("name", ["benchmark", "bench"])
def test_the_benchmark_always_runs_also_as_a_suite(machine: Machine, name: str) -> None:
    machine.said["benchmark"] = "passed"
    for _ in range(2):
        assert machine.validate("--only", name) == ["benchmark.one", "image.one"]
    assert "basis" not in machine.last.report


def test_a_required_thing_that_did_not_run_is_never_skipped(machine: Machine) -> None:
    machine.missing = ["rdma"]
    for _ in range(2):
        assert len(machine.validate("--require", "rdma")) == 4
        assert machine.last.report["exit_code"] == 3
    machine.missing, machine.said["rdma"] = [], "passed"
    assert len(machine.validate("--require", "rdma")) == 4
    assert machine.validate("--require", "rdma") == []


def test_nothing_is_required_of_a_part_of_a_run(machine: Machine) -> None:
    machine.said["ssh"] = "warned"
    machine.validate("--require", "os")
    assert machine.validate("--require", "os") == ["ssh.one"]
    assert machine.runs[-1] == ("--only", "ssh")


def test_a_number_of_gpus_is_asked_for_every_time(machine: Machine) -> None:
    machine.said["ssh"] = "warned"
    for _ in range(2):
        assert len(machine.validate("--require", "gpu=8")) == 4
        assert machine.runs[-1] == ("--require", "gpu=8")


def test_a_suite_that_did_not_load_takes_the_whole_run_with_it(machine: Machine) -> None:
    machine.more = {"unloaded": ["error: a suite does not load: nccl"]}
    for _ in range(2):
        assert len(machine.validate()) == 4


def test_some_suites_rest_on_a_whole_run_but_not_the_other_way(machine: Machine) -> None:
    machine.validate("--only", "os")
    assert len(machine.validate()) == 4
    assert machine.validate("--only", "ssh") == []
    assert machine.last.tier == "partial"
    assert [one["id"] for one in passed.checks_of(machine.last)] == ["ssh.one", "image.one"]
    assert machine.validate("--only", "ssh,torch") == ["ssh.one", "image.one"]


def test_suites_that_all_rest_have_not_passed(machine: Machine) -> None:
    machine.validate()
    assert machine.validate("--only", "rdma") == ["rdma.one", "image.one"]
    assert machine.last.report["exit_code"] == 3


def test_a_later_failure_counts_whatever_its_options_were(machine: Machine) -> None:
    machine.validate()
    machine.said["ssh"] = "failed"
    machine.validate("--loopback")
    machine.said["ssh"] = "passed"
    assert machine.validate() == ["ssh.one"]


def test_the_code_that_launches_and_judges_is_read_with_all_that_it_imports(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    put(tmp_path, "validation/in_container.py", "from imagegen.engine.containers import exec")
    put(tmp_path, "engine/containers/exec.py", "import os")
    put(tmp_path, "console/progress.py", "")
    monkeypatch.setattr(basis, "__file__", str(tmp_path / "validation/fingerprint.py"))
    first = basis.code_digest.__wrapped__()
    put(tmp_path, "console/progress.py", "changed = 1")
    assert basis.code_digest.__wrapped__() == first
    put(tmp_path, "engine/containers/exec.py", "import sys")
    assert basis.code_digest.__wrapped__() != first


def put(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text + "\n")


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """Make a machine with a GPU, an RDMA port and a disk controller."""
    for name, kind in (("01:00.0", "0x030200"), ("02:00.0", "0x020700"), ("03:00.0", "0x010802")):
        put(tmp_path, f"sys/bus/pci/devices/{name}/class", kind)
    put(tmp_path, "sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE")
    put(tmp_path, "sys/class/net/eth0/device/vendor", "0x15b3")
    put(tmp_path, "sys/class/net/eth0/mtu", "9000")
    put(tmp_path, "sys/class/net/veth1/mtu", "1500")
    put(tmp_path, "sys/module/mlx5_core/version", "5.8")
    put(tmp_path, "var/run/docker.pid", "77")
    put(tmp_path, "proc/77/limits", "Max locked memory 65536")
    put(tmp_path, "dev/infiniband/uverbs0", "")
    return tmp_path


def test_the_facts_of_a_machine(node: Path) -> None:
    found = surroundings.given(node)
    assert found["pci 01:00.0"].startswith("0x030200")
    assert "pci 03:00.0" not in found
    assert found["net eth0"] == "mtu 9000 "
    assert "net veth1" not in found
    assert found["engine limits"] == "Max locked memory 65536"
    assert "/dev/infiniband/uverbs0" in found


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN"),
        ("sys/class/net/eth0/mtu", "1500"),
        ("sys/module/mlx5_core/version", "5.9"),
        ("sys/module/nvidia/version", "550.54.15"),
        ("sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "8"),
        ("proc/77/limits", "Max locked memory unlimited"),
        ("dev/nvidia0", ""),
        ("etc/docker/daemon.json", "{}"),
    ],
)
def test_what_a_check_could_tell_apart_is_another_fact(node: Path, path: str, text: str) -> None:
    before = surroundings.given(node)
    assert surroundings.given(node) == before
    put(node, path, text)
    assert surroundings.given(node) != before
