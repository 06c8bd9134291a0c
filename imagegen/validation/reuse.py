"""Validate an image without the suites that have passed already: same image, checks and host.

A suite is left out if its latest run in exactly this image, with the same digest (`basis`, see
`fingerprint`), had no warning and no failure, and nothing that it required did not run. Nothing is
left out in runs with `--benchmark` or `--loopback`, in those on Soft-RoCE, and where the engine's
machine is not this one. The gate of a build does not use this module.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, cast

from imagegen.engine.images import local_images
from imagegen.model.validation import Report, ValidationRecord
from imagegen.validation.fingerprint import basis_of, only_of, options_of
from imagegen.validation.in_container import validate_image

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from imagegen.engine.client import Engine
    from imagegen.engine.images.local_image import LocalImage
    from imagegen.model.validation import Check, RunDigest
    from imagegen.validation.in_container import ValidationRequest

    Past = Sequence[ValidationRecord]

NOTHING_RAN = 3
"""The exit code of `validate` where every check was skipped; in a whole run others have run."""

HEAD = ("schema", "image", "tool")
FROM_OUTSIDE = "image"
"""The suite of the checks that `validation` adds; `validate` in the image does not know it."""

LASTING_RESTS = {
    *("no-gpu-hw", "gpu-not-passed", "no-rdma-hw", "rdma-not-passed", "not-in-recipe"),
    *("not-in-profile", "not-installed", "not-applicable", "needs-peer", "needs-root"),
}
"""Reasons to skip a check that follow from image, options and host; other reasons may change."""


@dataclass(frozen=True)
class Earlier:
    """Hold what earlier runs say about a request.

    `passed` are the checks of each suite that passed, with the time of their run as `earlier`.
    `before` are all checks of the last whole run; it is empty for a run with `--only`. `head` is
    the part of a report that describes the image, whichever checks ran.
    """

    passed: Mapping[str, tuple[Check, ...]]
    before: tuple[Check, ...] = ()
    head: Report = field(default_factory=Report)

    @property
    def open(self) -> list[str]:
        """List the suites of the last whole run that have to run again."""
        return [suite for suite in suites_of(self.before) if suite not in self.passed]

    @property
    def line(self) -> str:
        """Return the line that tells the user which suites are left out."""
        times = sorted({one["earlier"] for checks in self.passed.values() for one in checks})
        when = times[0] if len(times) == 1 else f"{times[0]} to {times[-1]}"
        which = f"{', '.join(self.passed)} " if self.open else ""
        return (
            f"skipped: {which}passed at {when}, same image, same checks, same host;"
            " `--again` runs them"
        )


def validate_open(
    engine: Engine,
    ref: str,
    request: ValidationRequest,
    past: Callable[[str], Past],
    on_line: Callable[[str], None],
    *,
    again: bool = False,
) -> ValidationRecord:
    """Validate an image without the suites that passed before.

    `past` is called with the image's id and returns its records, the latest first. The record is
    complete: checks of an earlier run have its time as `earlier`. Raises the errors of
    `validate_image`.
    """
    image = local_images.find(engine, ref)
    basis = basis_of(engine, image, ref, request) if image else ""
    earlier = None
    if image and basis and not again:
        earlier = earlier_of(past(image.id), basis, request)
    if image and earlier and not earlier.open:
        on_line(earlier.line)
        return _with_basis(_of_the_past(image, ref, request, earlier), basis, request)
    if image and earlier:
        on_line(earlier.line)
        record = validate_image(engine, ref, only_open(request, earlier), on_line)
        if record.image_id == image.id and same_rests(record, earlier):
            return _with_basis(joined(record, request, earlier), basis, request)
        on_line("other checks rest than before: everything runs")
    record = validate_image(engine, ref, request, on_line)
    return _with_basis(record, basis if image and record.image_id == image.id else "", request)


def earlier_of(past: Past, basis: str, request: ValidationRequest) -> Earlier | None:
    """Find what need not run again; None where everything has to run.

    Only a record of a whole run says which suites there are. A run with `--only` is either left out
    as a whole or not at all.
    """
    only = only_of(request)
    whole = next((one for one in past if is_whole(one, basis)), None)
    if not only and whole is None:
        return None
    before = () if only else tuple(checks_of(whole)) if whole else ()
    names = [*only, FROM_OUTSIDE] if only and request.look_into_layers else only
    found = {name: settled(name, past, basis) for name in names or suites_of(before)}
    passed = {name: checks for name, checks in found.items() if checks}
    proved = any(one["outcome"] == "passed" for name in passed if name != FROM_OUTSIDE
                 for one in passed[name])  # fmt: skip
    if not proved or (only and len(passed) < len(found)):
        return None
    head = {name: value for name, value in past[0].report.items() if name in HEAD}
    earlier = Earlier(passed, before, cast("Report", head))
    # A private key stays in its layer. Where only that check has to run again, everything runs.
    return None if earlier.open == [FROM_OUTSIDE] else earlier


def is_whole(record: ValidationRecord, basis: str) -> bool:
    """Return whether a record has all suites of a run with this digest, with nothing missing."""
    noted = _noted(record)
    return noted.get("digest") == basis and bool(noted.get("whole"))


def settled(suite: str, past: Past, basis: str) -> tuple[Check, ...]:
    """Return the checks of a suite from its latest run with this digest.

    It returns none where that run, or a later one with any options, had a warning or a failure.
    """
    for record in past:
        if record.tier == "soft-roce":  # another machine
            continue
        if record.report.get("unloaded"):
            return ()
        mine = [one for one in checks_of(record) if one["suite"] == suite]
        missing = bool(record.report.get("missing"))
        if not all(_well(one, missing) for one in mine):
            return ()
        if mine and _noted(record).get("digest") == basis:
            at = _noted(record)["at"]
            return tuple({"earlier": at, **one} for one in mine)
    return ()


def _well(check: Check, missing: bool) -> bool:
    """Return whether a check passed, or was skipped for a reason that lasts.

    In a run where something required is missing, any skipped check may be what was required.
    """
    if check["outcome"] == "skipped":
        return not missing and check.get("reason") in LASTING_RESTS
    return bool(check["outcome"] == "passed")


def checks_of(record: ValidationRecord) -> list[Check]:
    """Return the checks of a record; empty where its report has none."""
    return record.report.get("checks", [])


def suites_of(checks: Iterable[Check]) -> list[str]:
    """List the suites of some checks, each once, in their order."""
    return list(dict.fromkeys(one["suite"] for one in checks))


def _noted(record: ValidationRecord) -> RunDigest:
    return record.report.get("basis", {})


def only_open(request: ValidationRequest, earlier: Earlier) -> ValidationRequest:
    """Make the request that runs only the suites that have to run again.

    It requires nothing: an earlier run had everything that is required, and `same_rests` checks
    that this one had it too.
    """
    names = [name for name in earlier.open if name != FROM_OUTSIDE]
    options = options_of(request)
    if "--require" in options:
        at = options.index("--require")
        del options[at : at + 2]
    look = request.look_into_layers and FROM_OUTSIDE in earlier.open
    arguments = (*options, "--only", ",".join(names))
    return replace(request, arguments=arguments, look_into_layers=look)


def same_rests(record: ValidationRecord, earlier: Earlier) -> bool:
    """Return whether the same checks were skipped as in the whole run, for the same reasons.

    Only the suites that ran again are compared. A check that needs one of another suite might
    otherwise have been judged without it.
    """
    mine = [one for one in earlier.before if one["suite"] in earlier.open]
    return _rests(checks_of(record)) == _rests(mine) and not record.report.get("unloaded")


def _rests(checks: Iterable[Check]) -> dict[str, str]:
    return {
        one["id"]: str(one.get("reason", "")) if one["outcome"] == "skipped" else "ran"
        for one in checks
    }


def joined(
    record: ValidationRecord, request: ValidationRequest, earlier: Earlier
) -> ValidationRecord:
    """Make the record of a whole run from what ran now and what passed before."""
    now = checks_of(record)
    checks: list[Check] = []
    for suite in suites_of(earlier.before):
        checks += earlier.passed.get(suite) or [one for one in now if one["suite"] == suite]
    code = record.report["exit_code"]
    return _complete(record, request, checks, 0 if code == NOTHING_RAN else code)


def _of_the_past(
    image: LocalImage, ref: str, request: ValidationRequest, earlier: Earlier
) -> ValidationRecord:
    checks = [one for suite in earlier.passed.values() for one in suite]
    empty = ValidationRecord(image.id, ref, request.tier, True, {}, 0.0, earlier.head)
    return _complete(empty, request, checks, 0)


def _complete(
    record: ValidationRecord, request: ValidationRequest, checks: list[Check], code: int
) -> ValidationRecord:
    outcomes = ("passed", "failed", "warned", "skipped", "error")
    counts = {name: sum(one["outcome"] == name for one in checks) for name in outcomes}
    reasons = [str(one.get("reason", "")) for one in checks if one["outcome"] == "skipped"]
    report: Report = {
        **record.report,
        "tier": "static" if request.static else "full",
        "checks": checks,
        "counts": counts,
        "skips": {reason: reasons.count(reason) for reason in reasons},
        "missing": [],
        "exit_code": code,
    }
    return replace(record, tier=request.tier, passed=code == 0, counts=counts, report=report)


def _with_basis(
    record: ValidationRecord, basis: str, request: ValidationRequest
) -> ValidationRecord:
    """Add to a record what a later run needs to reuse it."""
    if not basis:
        return record
    at = datetime.now(timezone.utc).isoformat(timespec="seconds")
    whole = not (only_of(request) or record.report.get("missing") or record.report.get("unloaded"))
    noted: RunDigest = {"at": at, "digest": basis, "whole": whole}
    return replace(record, report={**record.report, "basis": noted})
