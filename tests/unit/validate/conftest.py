"""Checks on made-up machines run in one pytest that stays; the frame is tested in real ones."""

from __future__ import annotations

import pytest

from . import resident

REAL = ("test_validate_cli", "test_validate_plugin")
"""Tests of the frame itself: each run has a pytest of its own, as in an image."""


@pytest.fixture(autouse=True)
def one_pytest(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.path.stem not in REAL:
        resident.use(monkeypatch)
