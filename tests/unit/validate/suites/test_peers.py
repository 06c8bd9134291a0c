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
from validate.probes import collectives
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


def without_horovod(image: Situation, **components: Any) -> Situation:
    data = {**image.expected.data, "components": {"torch": {"version": "2.6.0"}, **components}}
    return image._replace(expected=image.expected._replace(data=data))


@pytest.mark.parametrize(
    ("problem", "says", "cause"),
    [
        ("rank 1 on b: all_reduce int64 x1: 4 at 0, not 3", "gloo: rank 1 on b", "wrong numbers"),
        ("RuntimeError: timed out", "gloo: RuntimeError: timed out", "do not meet"),
    ],
)
def test_without_horovod_ranks_of_torch_are_compared(
    image: Situation, monkeypatch: pytest.MonkeyPatch, problem: str, says: str, cause: str
) -> None:
    found = collectives.Exchange("gloo: 9 exchanges right on each of 2 ranks", "")
    monkeypatch.setattr(collectives, "between_hosts", lambda *_: found)
    measure = Measure()
    suite.test_allreduce(without_horovod(image), measure)
    assert measure.text == found.measured
    wrong = collectives.Exchange("", problem)
    monkeypatch.setattr(collectives, "between_hosts", lambda *_: wrong)
    with pytest.raises(CheckFailed) as failed:
        suite.test_allreduce(without_horovod(image), measure)
    assert says in str(failed.value)
    assert cause in failed.value.cause


def test_without_open_mpi_torchrun_starts_the_ranks(
    image: Situation, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def launched(_: Situation, hosts: list[str], program: list[str]) -> Result:
        asked.append((hosts, program))
        return Result(["torchrun"], 0, "a\nb\n", "")

    monkeypatch.setattr(collectives, "torchrun_on_hosts", launched)
    suite.test_ranks(without_horovod(image), Measure())
    assert asked == [(["a", "b"], ["--no_python", "hostname"])]
    with pytest.raises(pytest.skip.Exception, match="no Open MPI"):
        suite.test_daemon(without_horovod(image), Measure())


def test_ranks_of_mpirun_rest_where_a_peer_has_no_daemon(image: Situation) -> None:
    with_mpi = without_horovod(image, openmpi={"version": "4.1.4"})
    with pytest.raises(pytest.skip.Exception, match=r"peers\.daemon"):
        suite.test_ranks(with_mpi, Measure())
