"""Test the end of a build with failures, and how many builds run at the same time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from imagegen.builder.capacity import jobs_for
from imagegen.builder.failures import HINTS, build_failures
from imagegen.builder.size_budget import OVER_BUDGET
from imagegen.engine.builds.causes import CAUSES
from imagegen.engine.client import EngineMachine
from imagegen.model.build import BuildRecord

if TYPE_CHECKING:
    from imagegen.model.build import Outcome

GIB = 1 << 30


def record(cell: str, outcome: Outcome, cause: str = "", *detail: str) -> BuildRecord:
    return BuildRecord(
        cell, "t", "r", outcome, seconds=3.2, cause=cause, detail=detail, log="x.log"
    )


def test_what_went_well_is_no_failure() -> None:
    assert build_failures([record("m/a", "built"), record("m/b", "up-to-date")]) is None


def test_failures_stand_together_by_cause() -> None:
    error = build_failures(
        [
            record("m/a", "failed", "network", "one"),
            record("m/b", "failed", "disk full", "two"),
            record("m/c", "built"),
            record("m/d", "failed", "network", "three"),
            record("m/e", "cancelled", "cancelled"),
        ]
    )
    assert error is not None
    assert error.exit_code == 6
    assert [problem.text for problem in error.problems] == [
        "build of `m/e` failed: cancelled",
        "build of `m/b` failed: disk full",
        "2 builds failed: network",
    ]
    network = error.problems[2]
    assert network.evidence == ("m/a after 3 s", "  one", "m/d after 3 s", "  three")
    assert all(
        problem.hint == HINTS[cause]
        for problem, cause in zip(
            error.problems, ("cancelled", "disk full", "network"), strict=True
        )
    )


def test_a_cause_in_unknown_words_leads_to_the_log() -> None:
    error = build_failures([record("m/a", "failed", "command")])
    assert error is not None
    assert error.problems[0].hint == "read the full log: x.log"


def test_every_cause_that_has_a_hint_is_one_that_builds_give() -> None:
    of_the_build = {"engine died", "engine refused", "base", "validation", OVER_BUDGET}
    assert set(HINTS) <= {*CAUSES, *of_the_build}


@pytest.mark.parametrize(
    ("cores", "memory", "jobs"),
    [(1, 64 * GIB, 2), (2, 64 * GIB, 4), (64, 256 * GIB, 8), (16, 9 * GIB, 2), (2, GIB, 1)],
)
def test_as_many_builds_as_cores_and_memory_carry(cores: int, memory: int, jobs: int) -> None:
    assert jobs_for(EngineMachine(cores, memory, "/var/lib/docker", None)) == jobs
