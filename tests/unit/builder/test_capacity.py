"""Test whether a build fits on the engine's disk."""

from __future__ import annotations

import pytest

from imagegen.builder.capacity import check_room
from imagegen.engine.client import EngineMachine
from imagegen.errors import BuildError

GB = 1_000_000_000


def machine(free: int | None) -> EngineMachine:
    return EngineMachine(2, 8 * GB, "/var/lib/docker", free)


@pytest.mark.parametrize(("needed", "free"), [(0, 0), (8 * GB, 10 * GB), (99 * GB, None)])
def test_where_there_is_room_or_nobody_knows_nothing_is_said(needed: int, free: int | None) -> None:
    assert check_room(needed, machine(free)) == ""


def test_a_disk_that_is_nearly_too_small_is_warned_of() -> None:
    assert check_room(9 * GB, machine(10 * GB)) == (
        "warning: the images will take about 9.0 GB, and 10.0 GB are free at /var/lib/docker"
    )


def test_what_cannot_fit_is_refused() -> None:
    with pytest.raises(BuildError) as caught:
        check_room(11 * GB, machine(10 * GB))
    (problem,) = caught.value.problems
    assert problem.text == (
        "the images will not fit: they take about 11.0 GB, and 10.0 GB are free at /var/lib/docker"
    )
    assert "imagegen prune" in problem.hint
