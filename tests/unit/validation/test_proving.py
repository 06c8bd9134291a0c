"""Test what a validation proves: which pins, and which suites."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imagegen.validation.proving import Promise, pins_of, proved_suites

if TYPE_CHECKING:
    from imagegen.model.validation import Check


def check(suite: str, outcome: str, reason: str = "") -> Check:
    return {
        "id": f"{suite}.x",
        "suite": suite,
        "outcome": outcome,
        "measured": "",
        "reason": reason,
    }


def test_the_pins_are_those_of_the_image() -> None:
    promise: Promise = {
        "matrix": "mine",
        "cell": "one",
        "tool": "0.1.0",
        "os": {"id": "debian12"},
        "components": {
            "torch": {"version": "1.13.1", "variant": "", "facts": {}},
            "cuda": {"version": "11.3.1", "variant": "base", "facts": {"flavour": "devel"}},
        },
    }
    assert pins_of(promise) == {
        "os": "debian12",
        "torch": "1.13.1",
        "cuda": "11.3.1 base",
        "flavour": "devel",
    }


def test_a_suite_is_proved_if_something_passed_and_nothing_was_missing() -> None:
    checks = [
        check("os", "passed"),
        check("os", "skipped", "not-applicable"),
        check("gpu", "passed"),
        check("gpu", "skipped", "no-gpu-hw"),
        check("torch", "passed"),
        check("torch", "failed"),
        check("ssh", "skipped", "not-in-recipe"),
        check("mpi", "warned"),
        check("mpi", "passed"),
    ]
    assert proved_suites(checks) == ["mpi", "os"]
