"""Test `imagegen list`: who asked for a saved request, and whether it has expired."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from unit.conftest import SMALL

if TYPE_CHECKING:
    from collections.abc import Callable

    from unit.conftest import Ended, Overlay


@pytest.mark.parametrize(
    ("expires", "expected"),
    [("2001-01-01", "EXPIRED 2001-01-01"), ("9999-12-31", "until 9999-12-31")],
)
def test_a_saved_request_says_who_asked_and_until_when(
    small: Overlay, run: Callable[..., Ended], expires: str, expected: str
) -> None:
    small.matrix(SMALL + f"owner: ada\nexpires: {expires}\n")
    for _ in range(2):  # the second time from the cache
        lines = run("list").out.splitlines()
        assert lines[0].endswith("asked for by")
        assert lines[1].endswith(f"ada {expected}")
    rows = json.loads(run("list", "--format", "json").out)
    assert {row["expired"] for row in rows} == {expires.startswith("2001")}
