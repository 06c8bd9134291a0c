"""This module defines a check, the four ways in which one ends, and its result.

A check is a pytest function under `suites/` with the `check` decorator on it. It passes by
returning; it fails by `fail(...)`, which a check of severity `warn` turns into a warning; it warns
by `warn(...)`, whatever its severity; it is skipped by `skip(code, why)`, with one of SKIP_CODES.

Nothing here needs pytest before a check is skipped: reports are also written where there is none.
"""

from typing import Any, Callable, NamedTuple, NoReturn, Tuple, TypeVar

SEVERITIES = ("fail", "warn", "info")
TIERS = ("static", "live", "asked")
"""`static` needs no device, service, privilege or network; `asked` runs only where it is asked
for by an option of its own."""
SKIP_CODES = (
    "no-gpu-hw",
    "gpu-not-passed",
    "no-rdma-hw",
    "rdma-not-passed",
    "not-in-recipe",
    "needs-peer",
    "needs-root",
    "needs-start",
    "not-installed",
    "blocked-by",
    "not-applicable",
    "not-in-profile",
    "not-from-outside",
)

PASSED, FAILED, WARNED, SKIPPED, ERROR = "passed", "failed", "warned", "skipped", "error"
"""Outcomes; `error`: the check itself broke."""

Function = TypeVar("Function", bound=Callable[..., Any])


class Check(NamedTuple):
    """The fixed part of a check. `cause` and `remedy` may be made more exact where it fails.

    `probe` is what exactly is looked at; `needs` names checks without which this one could only
    repeat their failure.
    """

    id: str
    proves: str
    severity: str
    tier: str
    cause: str
    remedy: str
    needs: Tuple[str, ...] = ()
    probe: str = ""


class CheckResult(NamedTuple):
    """A check and its outcome. `reason` is the skip code; seconds are wall time; `earlier` is the
    time of the run in which it passed, where that was not this one."""

    check: Check
    suite: str
    outcome: str
    measured: str
    cause: str = ""
    remedy: str = ""
    reason: str = ""
    seconds: float = 0.0
    earlier: str = ""


class CheckFailed(AssertionError):
    """A check found something: what was measured, why that is so, and a line to paste."""

    def __init__(self, measured: str, cause: str = "", remedy: str = "") -> None:
        super().__init__(measured)
        self.measured = measured
        self.cause = cause
        self.remedy = remedy


class CheckWarned(CheckFailed):
    """A finding that does not make the container unfit, whatever the severity of the check."""


def check(
    id: str,  # noqa: A002  (the word of the catalogue)
    proves: str,
    severity: str = "fail",
    tier: str = "static",
    cause: str = "",
    remedy: str = "",
    needs: Tuple[str, ...] = (),
) -> Callable[[Function], Function]:
    """Make a test function a check; its docstring is the probe. Raises ValueError for an unknown
    severity or tier."""
    if severity not in SEVERITIES or tier not in TIERS:
        raise ValueError("check {}: severity {}, tier {}".format(id, severity, tier))

    def mark(function: Function) -> Function:
        probe = " ".join((function.__doc__ or "").split())
        entry = Check(id, proves, severity, tier, cause, remedy, needs, probe)
        function.check = entry  # type: ignore[attr-defined]
        return function

    return mark


def fail(measured: str, cause: str = "", remedy: str = "") -> NoReturn:
    """End the running check: it failed (or warns, if that is its severity)."""
    raise CheckFailed(measured, cause, remedy)


def warn(measured: str, cause: str = "", remedy: str = "") -> NoReturn:
    """End the running check with a warning."""
    raise CheckWarned(measured, cause, remedy)


def skip(code: str, why: str = "") -> NoReturn:
    """End the running check: it does not apply here. The code says why to a program."""
    if code not in SKIP_CODES:
        raise ValueError("unknown skip code {}".format(code))
    import pytest

    pytest.skip("{}: {}".format(code, why) if why else code)
