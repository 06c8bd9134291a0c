"""Test the reports of containers that run already."""

from __future__ import annotations

from typing import Any

import pytest

from imagegen.errors import ValidationError
from imagegen.model.cell import PROFILES
from imagegen.validation.outside import failures, validate_hosts
from validate import requirements
from validate.outside import remote
from validate.process import Result


def _report(host: str, code: int, *checks: tuple[str, str], missing: tuple[str, ...] = ()) -> Any:
    rows = [{"id": name, "outcome": outcome, "measured": "seen"} for name, outcome in checks]
    return {"host": host, "exit_code": code, "checks": rows, "missing": list(missing)}


def test_hosts_that_pass_are_no_error() -> None:
    assert failures([_report("docker://a", 0, ("lim.shm", "warned"))]) is None


def test_what_failed_is_named_by_host() -> None:
    reports = [
        _report("docker://a", 0, ("os.arch", "passed")),
        _report("docker://b", 1, ("os.arch", "failed"), ("os.glibc", "passed")),
        _report("docker://c", 3, missing=("rdma",)),
    ]
    error = failures(reports)
    assert isinstance(error, ValidationError)
    assert error.problems[0].text == "2 of 3 hosts did not pass"
    assert list(error.problems[0].evidence) == [
        "docker://b: os.arch: seen",
        "docker://c: required, but it did not run: rdma",
    ]


def test_a_host_that_is_none_is_named() -> None:
    with pytest.raises(ValidationError) as caught:
        validate_hosts("nothing://x", [], lambda _: None)
    assert caught.value.problems[0].text.startswith("`nothing://x` is no host: ")


def test_a_machine_that_ssh_does_not_reach_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Testinfra raises an error for ssh's exit code 255, whatever ssh printed."""
    said = Result(["ssh"], 255, "", "ssh: connect to host x port 1: Connection refused\n")
    monkeypatch.setattr(remote, "run", lambda *_, **__: said)
    with pytest.raises(ValidationError) as caught:
        validate_hosts("ssh://root@x:1,docker://y", [], lambda _: None)
    (problem,) = caught.value.problems
    text = "`ssh://root@x:1` cannot be reached: ssh: connect to host x port 1: Connection refused"
    assert problem.text == text
    assert len(problem.evidence) == 1


def test_the_profiles_are_those_of_validate() -> None:
    assert tuple(requirements.PROFILES) == PROFILES
