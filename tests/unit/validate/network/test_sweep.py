"""Test the sweep of a rank with ranks that are threads, and how messages become rows."""

from __future__ import annotations

import threading
from array import array
from typing import Any

import pytest

from validate.network.measured import Gathered, Row
from validate.network.sweep import CHUNK, PERIOD, Mpi, measured_rows, share, wanted


class Threads:
    """Adds up what all threads give; `damage` changes the result of a rank."""

    def __init__(self, world: int, damage: dict[int, Any] | None = None) -> None:
        self.world, self.damage = world, damage or {}
        self.barrier = threading.Barrier(world, timeout=20)
        self.given: dict[int, Any] = {}

    def rank(self, number: int) -> Rank:
        return Rank(self, number)


class Rank:
    """Has the methods of a transport; patterns are those of the real one."""

    fill, wrong = Mpi.fill, Mpi.wrong

    def __init__(self, job: Threads, number: int) -> None:
        self.job, self.number = job, number

    def buffer(self, count: int) -> Any:
        return array("f", bytes(4 * count))

    def reduce(self, buffer: Any) -> None:
        self.job.given[self.number] = list(buffer)
        self.job.barrier.wait()
        total = [sum(column) for column in zip(*self.job.given.values(), strict=True)]
        self.job.barrier.wait()
        buffer[:] = array("f", total)
        if self.number in self.job.damage:
            self.job.damage[self.number](buffer)

    def wait(self) -> None:
        pass

    def told(self, number: float) -> float:
        if self.number == 0:
            self.job.given["told"] = number  # type: ignore[index]
        self.job.barrier.wait()
        said = self.job.given["told"]  # type: ignore[index]
        self.job.barrier.wait()
        self.job.given.pop("told", None)  # type: ignore[call-overload]
        self.job.barrier.wait()
        return float(said)


def swept(
    world: int, sizes: list[int], pace: tuple[float, float] = (60, 0.001), **damage: Any
) -> list[list[dict[str, Any]]]:
    """Return the rows of every rank."""
    job = Threads(world, {int(name[1:]): change for name, change in damage.items()})
    rows: list[list[dict[str, Any]]] = [[] for _ in range(world)]

    def work(number: int) -> None:
        rows[number] += measured_rows(job.rank(number), number, world, sizes, pace)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(world)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
    return rows


@pytest.mark.parametrize("world", [1, 2, 3])
def test_right_sums_have_nothing_wrong(world: int) -> None:
    for rows in swept(world, [8, 4096, 40000]):
        assert [(row["size"], row["wrong"]) for row in rows] == [(8, 0), (4096, 0), (40000, 0)]
        assert all(row["seconds"] > 0 for row in rows)


def _one(buffer: Any) -> None:
    buffer[-1] += 1


def _nan(buffer: Any) -> None:
    buffer[0] = float("nan")


def _shifted(buffer: Any) -> None:
    buffer[:] = buffer[1:] + buffer[:1]


def _nothing(buffer: Any) -> None:
    buffer[:] = array("f", bytes(4 * len(buffer)))


@pytest.mark.parametrize(
    ("change", "wrong"), [(_one, 1), (_nan, 1), (_shifted, 1000), (_nothing, 1000)]
)
def test_wrong_elements_are_counted_on_the_rank_that_has_them(change: Any, wrong: int) -> None:
    first, second = swept(2, [4000], r1=change)
    assert [row["wrong"] for row in first] == [0]
    # A shift leaves an element alone where the pattern starts anew with the same sum.
    assert second[0]["wrong"] == pytest.approx(wrong, rel=0.1)


def test_the_shares_of_ranks_differ_and_their_sums_are_whole() -> None:
    shares = [share(rank, 3) for rank in range(64)]
    assert len({tuple(one) for one in shares}) == 64
    assert wanted(64, 3) == [sum(column) for column in zip(*shares, strict=True)]
    assert CHUNK % PERIOD == 0


def test_what_there_is_no_time_for_is_left_out_on_every_rank() -> None:
    for rows in swept(2, [8, 16, 32], pace=(0, 0.001)):
        assert [row.get("size") for row in rows] == [8, None]
        assert rows[1] == {"left_out": [16, 32]}


def test_busbw_is_that_of_nccl_tests() -> None:
    """doc/PERFORMANCE.md of nccl-tests: busbw = algbw * 2 (n - 1) / n."""
    row = Row(1 << 30, 0.01, 0, 8)
    assert row.algbw == pytest.approx(107.3741824)
    assert row.busbw == pytest.approx(107.3741824 * 1.75)
    assert Row(8, 0.01, 0, 1).busbw == 0


def test_a_row_is_complete_when_every_rank_has_said_it() -> None:
    job = Gathered(("a", "b"), (1, 2))
    said = [{"rank": n, "size": 8, "seconds": 0.1 * (n + 1), "wrong": n} for n in range(3)]
    assert job.take(said[0]) == job.take(said[2]) == []
    (row,) = job.take(said[1])
    assert row.seconds == pytest.approx(0.2)
    assert (row.wrong, row.ranks) == (3, 3)
    assert job.run([8]).wrong == {"b": 3}
    assert job.run([8]).problem == ""
    assert job.run([8, 16]).problem == "the ranks ended after 1 of 2 sizes"


def test_a_problem_of_all_hosts_is_said_once() -> None:
    job = Gathered(("a", "b"), (1, 1))
    job.fault("a", "no end within 20 s")
    assert job.run([8]).problem == "a: no end within 20 s"
    job.fault("b", "no end within 20 s")
    assert job.run([8]).problem == "no end within 20 s"
    assert job.run([8]).speed == 0
