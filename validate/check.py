"""Define a check, the ways in which it can end, and its result.

A check is a pytest function under `suites/` with the `check` decorator. It passes when it returns.
It fails by `fail(...)`, which is only a warning if the severity of the check is `warn`. It warns by
`warn(...)`, whatever its severity. It is skipped by `skip(code, why)`, with one of SKIP_CODES.

This module imports pytest only when a check is skipped: `imagegen` writes reports without pytest.
"""

from typing import Any, Callable, NamedTuple, NoReturn, Tuple, TypeVar

from validate.remedy import NO_REMEDY, Remedy, as_remedy

SEVERITIES = ("fail", "warn", "info")
TIERS = ("static", "live", "asked")
"""`static` needs no device, service, privilege or network; `asked` runs only when an option of its
own asks for it.
"""
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
"""The outcomes. `error` means that the check itself broke."""

Function = TypeVar("Function", bound=Callable[..., Any])


class Check(NamedTuple):
    """Describe one check: all that is the same in every run.

    `cause` and `remedy` may be replaced by more exact ones when the check fails. `probe` says
    exactly what is looked at. `needs` names other checks: if one of them fails, this check is
    skipped, because it could only fail for the same reason.
    """

    id: str
    proves: str
    severity: str
    tier: str
    cause: str
    remedy: Remedy
    needs: Tuple[str, ...] = ()
    probe: str = ""


class CheckResult(NamedTuple):
    """Hold the outcome of one check.

    `reason` is the skip code, `seconds` is wall time. `earlier` is the time of an earlier run in
    which the check passed; it is empty if the check ran in this run. `kind` is the kind of the
    remedy, `look` a command that only looks, `action` what the start of a job has to lead to; see
    remedy.py. All three are empty if nothing was found.
    """

    check: Check
    suite: str
    outcome: str
    measured: str
    cause: str = ""
    remedy: str = ""
    reason: str = ""
    seconds: float = 0.0
    earlier: str = ""
    kind: str = ""
    look: str = ""
    action: str = ""

    def with_remedy(self, remedy: str) -> "CheckResult":
        """Return the result with a remedy, its kind, what looks, and the action."""
        given = as_remedy(remedy)
        found = self._replace(remedy=str(given), kind=given.kind, look=given.look)
        return found._replace(action=given.action)


class CheckFailed(AssertionError):
    """Signal that a check failed: what was measured, the cause, and what corrects it."""

    def __init__(self, measured: str, cause: str = "", remedy: str = "") -> None:
        super().__init__(measured)
        self.measured = measured
        self.cause = cause
        self.remedy = as_remedy(remedy)


class CheckWarned(CheckFailed):
    """Signal a finding that is only a warning, whatever the severity of the check."""


def check(
    id: str,  # noqa: A002  (the word of the catalogue)
    proves: str,
    severity: str = "fail",
    tier: str = "static",
    cause: str = "",
    remedy: Remedy = NO_REMEDY,
    needs: Tuple[str, ...] = (),
) -> Callable[[Function], Function]:
    """Turn a test function into a check; its docstring becomes the probe.

    Raises ValueError for an unknown severity or tier.
    """
    if severity not in SEVERITIES or tier not in TIERS:
        raise ValueError("check {}: severity {}, tier {}".format(id, severity, tier))

    def mark(function: Function) -> Function:
        probe = " ".join((function.__doc__ or "").split())
        entry = Check(id, proves, severity, tier, cause, as_remedy(remedy), needs, probe)
        function.check = entry  # type: ignore[attr-defined]
        return function

    return mark


def fail(measured: str, cause: str = "", remedy: Remedy = NO_REMEDY) -> NoReturn:
    """End the running check as failed, or as warned if its severity is not `fail`."""
    raise CheckFailed(measured, cause, remedy)


def warn(measured: str, cause: str = "", remedy: Remedy = NO_REMEDY) -> NoReturn:
    """End the running check with a warning."""
    raise CheckWarned(measured, cause, remedy)


def skip(code: str, why: str = "") -> NoReturn:
    """End the running check because it does not apply here; programs read the code as the reason.

    Raises ValueError for an unknown code.
    """
    if code not in SKIP_CODES:
        raise ValueError("unknown skip code {}".format(code))
    import pytest

    pytest.skip("{}: {}".format(code, why) if why else code)
