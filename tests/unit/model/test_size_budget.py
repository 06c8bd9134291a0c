"""Test how large an image may become."""

from __future__ import annotations

import pytest

from imagegen.builder.size_budget import overrun
from imagegen.model.build import BuildRecord, StepRecord
from imagegen.model.cell import DEFAULT, SizeBudget, budget_of


def step(component: str, release: str, size: int) -> StepRecord:
    return StepRecord("[x 1/1] RUN", "x", 1.0, False, component, release, size)


BEFORE = (step("torch", "2.5.0", 600_000_000), step("torch", "2.5.0", 0), step("ssh", "10", 20))
LAST = BuildRecord("m/c", "t", "r", "built", "sha256:111111111111", size_bytes=10**9, steps=BEFORE)
NOW = (step("torch", "2.6.0", 900_000_000), step("ssh", "10", 20), step("nccl", "2.2", 1_000_000))


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (None, SizeBudget(1.2)),
        ({}, SizeBudget(1.2)),
        ({"action": "fail"}, SizeBudget(1.2, 0, True)),
        ({"factor": "1.05", "action": "warn"}, SizeBudget(1.05)),
        ({"size": "2.5 GB"}, SizeBudget(0, 2_500_000_000)),
        ({"size": "300 MB", "factor": "2"}, SizeBudget(2, 300_000_000)),
    ],
)
def test_what_a_matrix_says(row: dict[str, str] | None, expected: SizeBudget) -> None:
    assert budget_of(row) == expected


@pytest.mark.parametrize(
    ("budget", "size", "allowed"),
    [
        (DEFAULT, 1_200_000_000, None),
        (DEFAULT, 1_200_000_001, 1_200_000_000),
        (SizeBudget(2), 1_900_000_000, None),
        (SizeBudget(0, 500), 501, 500),
        (SizeBudget(0, 2 * 10**9), 1_999_999_999, None),
        (SizeBudget(1.2, 2 * 10**9), 1_300_000_000, 1_200_000_000),
        (SizeBudget(3, 2 * 10**9), 2_100_000_000, 2 * 10**9),
    ],
)
def test_the_lower_limit_holds(budget: SizeBudget, size: int, allowed: int | None) -> None:
    found = overrun(budget, size, NOW, LAST)
    assert (found and found.allowed_bytes) == allowed


def test_a_first_image_has_no_factor_to_hold() -> None:
    assert overrun(DEFAULT, 10**12, NOW, None) is None
    over = overrun(SizeBudget(1.2, 10**6), 10**9, NOW, None)
    assert over is not None
    assert over.why == "`size_budget` of its matrix"


def test_the_layers_that_grew_are_named() -> None:
    over = overrun(DEFAULT, 1_400_000_000, NOW, LAST)
    assert over is not None
    assert over.lines("sha256:2222222222220") == (
        "1.4 GB is over the size budget of 1.2 GB: 1.2 x the last good image, 1.0 GB",
        "  torch 2.6.0: 300 MB more",
        "  nccl 2.2: 1.0 MB more",
        "  imagegen diff 111111111111 222222222222",
    )
