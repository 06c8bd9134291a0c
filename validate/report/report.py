"""Hold the results of one whole run and decide its exit code."""

from collections import Counter
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from validate.check import ERROR, FAILED, PASSED, SKIPPED, WARNED, CheckResult
from validate.requirements import why_not_run

EXIT_FAILED, EXIT_USAGE, EXIT_NOT_RUN, EXIT_INTERRUPTED = 1, 2, 3, 130
"""In this order: something failed; bad usage or no expectation file; a required thing did not run,
or nothing ran; Ctrl-C.
"""

PREFLIGHT = "preflight"
"""The tier of a run before a job."""

OUTCOMES = (PASSED, FAILED, WARNED, SKIPPED, ERROR)
MARKS = {PASSED: "ok", FAILED: "FAIL", WARNED: "warn", SKIPPED: "skip", ERROR: "ERROR"}
"""Outcome -> its word in the table and on the page."""


class Report(NamedTuple):
    """Hold one whole run.

    `missing` lists what was required and did not run. `unloaded` lists the suites that did not
    load, with the reason. `figures` are those of a measurement, by its option.
    """

    image: str
    tool: str
    tier: str
    results: List[CheckResult]
    missing: List[str]
    seconds: float
    exit_code: int
    unloaded: Tuple[str, ...] = ()
    figures: Dict[str, Any] = {}


def counts(results: Sequence[CheckResult]) -> Dict[str, int]:
    """Count the results of each outcome; all five outcomes are always there."""
    counted = Counter(one.outcome for one in results)
    return {outcome: counted.get(outcome, 0) for outcome in OUTCOMES}


def skips(results: Sequence[CheckResult]) -> Dict[str, int]:
    """Count the skipped checks by skip code."""
    return dict(Counter(one.reason for one in results if one.outcome == SKIPPED))


def exit_code(
    results: Sequence[CheckResult], missing: Sequence[str], unloaded: Sequence[str]
) -> int:
    """Return the exit code of a run: 0 if all is well, with or without warnings."""
    number = counts(results)
    if number[FAILED] or number[ERROR] or unloaded:
        return EXIT_FAILED
    executed = number[PASSED] + number[WARNED]
    return EXIT_NOT_RUN if missing or not executed else 0


def unmet(report: Report) -> List[str]:
    """Say why a run does not pass although no check failed; empty if it passes.

    The reasons: a required thing was skipped, a suite did not load, or no check ran at all.
    """
    found = [
        "required, but it did not run: " + why_not_run(name, report.results)
        for name in report.missing
    ]
    found += ["a suite does not load: " + text for text in report.unloaded]
    number = counts(report.results)
    if not sum(number[name] for name in (PASSED, FAILED, WARNED, ERROR)):
        found.append("no check ran: that is no pass")
    return found


def summary(report: Report) -> str:
    """Sum a run up: `37 passed, 1 failed, 2 warned, 6 skipped (no-rdma-hw 4, …) in 3.4 s`."""
    number = counts(report.results)
    why = ", ".join("{} {}".format(c, n) for c, n in sorted(skips(report.results).items()))
    skipped = "{} skipped".format(number[SKIPPED]) + (" ({})".format(why) if why else "")
    failed = "{} failed".format(number[FAILED] + number[ERROR])
    parts = [
        "{} passed".format(number[PASSED]),
        failed,
        "{} warned".format(number[WARNED]),
        skipped,
    ]
    return "{} in {:.1f} s".format(", ".join(parts), report.seconds)
