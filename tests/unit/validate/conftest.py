"""Run checks on made-up machines in one pytest that stays."""

from __future__ import annotations

import pytest

from unit.validate import resident


@pytest.fixture(autouse=True)
def one_pytest(monkeypatch: pytest.MonkeyPatch) -> None:
    resident.use(monkeypatch)
