"""Test the page of `imagegen doctor`: it judges, sets up on demand, and ends with the failures."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from imagegen.maintenance.doctor import Facts
from imagegen.workflow import doctor as page
from unit.maintenance.test_doctor import BARE, READY

if TYPE_CHECKING:
    from collections.abc import Callable

    from unit.conftest import Ended

Look = tuple[int, str]


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[Look]:
    """Record each look at the machine, which is bare at the first one and then ready."""
    asked: list[Look] = []

    def look(needed: int, image: str) -> Facts:
        asked.append((needed, image))
        found = READY if len(asked) > 1 else replace(BARE, host=READY.host)
        return Facts(found, needed)

    monkeypatch.setattr(page, "look", look)
    return asked


def test_what_fails_ends_the_verb(looks: list[Look], run: Callable[..., Ended]) -> None:
    ended = run("doctor")
    assert looks == [(page.BYTES_FOR_A_CELL, page.ANY_IMAGE)]
    assert ended.code == 9
    assert "fail  engine " in ended.out
    assert "      hint: imagegen doctor --fix" in ended.out
    assert "error: engine: no container engine answers" in ended.err


def test_fix_sets_up_and_looks_again(
    looks: list[Look], run: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    plans: list[int] = []
    monkeypatch.setattr(page, "apply", lambda plan, *_: plans.append(len(plan)))
    ended = run("doctor", "--fix")
    assert ended.code == 0
    assert plans[0] > 0
    assert len(looks) == 2


@pytest.mark.usefixtures("small")
def test_a_matrix_says_how_much_disk_it_needs(looks: list[Look], run: Callable[..., Ended]) -> None:
    run("doctor", "--matrix", "small")
    assert looks == [(4 * page.BYTES_FOR_A_CELL, "debian:12-slim")]
