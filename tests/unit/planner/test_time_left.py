"""Test how long a running build will take."""

from __future__ import annotations

from imagegen.planner.cost import Cost, Step
from imagegen.planner.time_left import LEAST_SHARE, TimeLeft

BASE = (("a", "1"),)
LEFT, RIGHT = (*BASE, ("b", "1")), (*BASE, ("b", "2"))


def trees() -> dict[str, tuple[Step, ...]]:
    """Return two cells that share 10 seconds and have 30 and 50 of their own."""
    above = (
        Step(LEFT, Cost(30.0, 3), ("left",), ()),
        Step(RIGHT, Cost(50.0, 5), ("right",), ()),
    )
    return {"os": (Step(BASE, Cost(10.0, 1), ("left", "right"), above),)}


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_longest_way_or_all_work_side_by_side() -> None:
    assert TimeLeft(trees(), 1).seconds() == 90.0
    assert TimeLeft(trees(), 2).seconds() == 60.0


def test_what_a_cell_has_passed_is_done_for_all() -> None:
    clock = Clock()
    left = TimeLeft(trees(), 1, clock)
    assert left.reached("left", "b") == 3
    assert left.seconds() == 80.0
    clock.now += 20
    assert left.seconds() == 60.0
    clock.now += 1000
    assert left.seconds() == 50.0 + LEAST_SHARE * 30.0
    left.done("left", well=True)
    assert left.seconds() == 50.0
    left.done("right", well=True)
    assert left.seconds() == 0.0


def test_a_failed_cell_owes_what_others_need_and_nothing_else() -> None:
    left = TimeLeft(trees(), 1)
    left.done("left", well=False)
    assert left.seconds() == 60.0


def test_what_was_not_planned_changes_nothing() -> None:
    left = TimeLeft(trees(), 1)
    assert left.reached("left", "other") == 0
    assert left.reached("nobody", "b") == 0
    left.done("nobody", well=True)
    assert left.seconds() == 90.0
