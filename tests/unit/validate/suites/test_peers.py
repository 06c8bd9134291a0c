"""Test hosts of one job that differ: other limits, ranks that stay here, wrong sums.

Real containers test hosts that are alike, and a missing login or daemon.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from unit.validate import trees
from validate.check import CheckFailed
from validate.fixtures import Measure, Situation
from validate.probes.peers import Peer
from validate.process import Result
from validate.suites import test_peers as suite

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HERE = {"host": "a", "memlock": "unlimited", "nofile": "1048576"}
SUM = "sum rank {} of 2 is {}\n"


@pytest.fixture
def image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Situation:
    """Return a container `a` that has visited its peer `b`."""
    there = Peer("b", Result(["ssh"], 0, "", ""), HERE | {"host": "b", "memlock": "8192"})
    monkeypatch.setattr(suite, "_here", lambda _: HERE)
    monkeypatch.setattr(suite, "_peers", lambda _: [there])
    monkeypatch.setattr(suite, "_hosts", lambda _: ["a", "b"])
    components = {"horovod": {"version": "0.28.1"}, "python": {"version": "3.11"}}
    recipe = trees.expected(tmp_path, components=components)
    return Situation(recipe, dict(os.environ), str(tmp_path), {})


@pytest.fixture
def mpirun(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Set what a launch over both hosts prints."""

    def says(out: str, code: int = 0, err: str = "") -> None:
        monkeypatch.setattr(suite, "_launch", lambda *_: Result(["mpirun"], code, out, err))

    return says


def told(check: Callable[..., Any], image: Situation) -> str:
    with pytest.raises(CheckFailed) as failed:
        check(image, Measure())
    return str(failed.value)


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        ("ssh: Could not resolve hostname b: Name or service not known", suite.NAMES),
        ("root@b: Permission denied (publickey).", suite.KEYS),
    ],
)
def test_a_name_that_is_not_known_is_no_missing_key(
    image: Situation, monkeypatch: pytest.MonkeyPatch, said: str, remedy: str
) -> None:
    lost = Peer("b", Result(["ssh"], 255, "", said), {})
    monkeypatch.setattr(suite, "_peers", lambda _: [lost])
    with pytest.raises(CheckFailed) as failed:
        suite.test_login(image, Measure())
    assert (failed.value.remedy or suite.test_login.check.remedy) == remedy  # type: ignore[attr-defined]


def test_other_limits_fail_where_there_is_rdma(
    image: Situation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suite, "rdma_devices", lambda _: ["mlx5_0"])
    assert told(suite.test_limits, image) == "memlock is `8192` on b, `unlimited` here"


def test_ranks_that_all_run_here_fail(image: Situation, mpirun: Callable[..., None]) -> None:
    mpirun("a\na\n")
    assert told(suite.test_ranks, image) == "2 ranks were started, they ran on a"
    mpirun("", 1, "ORTE was unable to reliably start one or more daemons.")
    assert told(suite.test_ranks, image).startswith("`mpirun` ended with exit code 1: ORTE was")
    mpirun("a\nb\n")
    suite.test_ranks(image, Measure())


def test_a_sum_that_is_wrong_or_of_another_size_fails(
    image: Situation, mpirun: Callable[..., None]
) -> None:
    mpirun(SUM.format(0, "3.0") + SUM.format(1, "1.0"))
    said = "wanted 3.0 of 2 ranks: rank 0 of 2: 3.0; rank 1 of 2: 1.0"
    assert told(suite.test_allreduce, image) == said
    mpirun("sum rank 0 of 1 is 1.0\nsum rank 0 of 1 is 1.0\n")
    assert told(suite.test_allreduce, image).startswith("wanted 3.0 of 2 ranks: rank 0 of 1: 1.0")
    mpirun("")
    assert told(suite.test_allreduce, image) == "wanted 3.0 of 2 ranks: nothing"
    mpirun(SUM.format(1, "3.0") + SUM.format(0, "3.0"))
    suite.test_allreduce(image, Measure())
