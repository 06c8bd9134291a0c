"""Places for builds: never more than there are, given back whenever and however a build ends."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from imagegen.slots import Slots


def test_no_more_work_than_there_are_places() -> None:
    slots, most, now, lock = Slots(2), 0, 0, threading.Lock()
    met = threading.Barrier(2)

    def work(cell: str) -> None:
        nonlocal most, now
        with slots.held(cell):
            with lock:
                now += 1
                most = max(most, now)
            met.wait(10)
            with lock:
                now -= 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, "abcdefgh"))
    assert (most, now) == (2, 0)


def test_who_leaves_early_lets_another_in_and_leaves_once() -> None:
    slots = Slots(1)
    with slots.held("first"):
        assert not has_place(slots)
        slots.leave("first")
        slots.leave("first")
        with slots.held("second"):
            assert not has_place(slots)
            slots.leave("somebody else")
            assert not has_place(slots)
    assert has_place(slots)


def test_a_failure_gives_the_place_back() -> None:
    slots = Slots(1)
    with pytest.raises(ValueError, match="broken"), slots.held("first"):
        raise ValueError("broken")
    assert has_place(slots)


def test_who_stops_waits_no_longer_and_takes_no_place() -> None:
    slots = Slots(1)
    with slots.held("first"):
        with slots.held("second", lambda: True):
            assert not has_place(slots)
        assert not has_place(slots)
    assert has_place(slots)


def has_place(slots: Slots) -> bool:
    """Whether one more cell would get a place at once."""
    asked = iter([False])
    taken = threading.Event()
    with slots.held("probe", lambda: next(asked, True)):
        if "probe" in slots._holders:
            taken.set()
    return taken.is_set()
