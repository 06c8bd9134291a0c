"""Validation without what has passed already: same image, same checks, same host.

A suite rests where its latest run in exactly this image, on the same `basis`, came without a
warning, a failure, or a required thing that did not run. Never skipped are runs with `--benchmark`
or `--loopback`, those on Soft-RoCE, and anything where the engine's machine is not in sight. The
gate of a build does not come here.
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
"""The exit code of `validate` where every check rests; in a whole run others have run."""

HEAD = ("schema", "image", "tool")
FROM_OUTSIDE = "image"
"""The suite of the checks that `validation` adds; `validate` in the image does not know it."""

LASTING_RESTS = {
    *("no-gpu-hw", "gpu-not-passed", "no-rdma-hw", "rdma-not-passed", "not-in-recipe"),
    *("not-in-profile", "not-installed", "not-applicable", "needs-peer", "needs-root"),
}
"""Reasons to rest that follow from image, options and host; the others are of the moment."""


@dataclass(frozen=True)
class Earlier:
    """What past runs say of a request: checks of each suite that passed, marked with the time of
    their run, and `before`: all checks of the last whole run, empty for a run with `--only`.

    `head` is what a report says of the image, whichever checks ran."""

    passed: Mapping[str, tuple[Check, ...]]
    before: tuple[Check, ...] = ()
    head: Report = field(default_factory=Report)

    @property
    def open(self) -> list[str]:
        """The suites of the last whole run that have to run again."""
        return [suite for suite in suites_of(self.before) if suite not in self.passed]

    @property
    def line(self) -> str:
        """What is said of it."""
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
    """Like `validate_image`, without the suites that passed; their checks come from `past`, which
    is told the image's id and gives its records, the latest first. The record is complete: checks
    of an earlier run have its time as `earlier`. Raises as `validate_image` does."""
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
    """What need not run again; None where everything does.

    Which suites a whole run has, only a whole run tells. One with `--only` rests whole or not.
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
    # A key in a layer stays there: where it is all that is open, the run is as good as whole.
    return None if earlier.open == [FROM_OUTSIDE] else earlier


def is_whole(record: ValidationRecord, basis: str) -> bool:
    """Whether a record tells of all suites of a run with this basis, with nothing missing."""
    noted = _noted(record)
    return noted.get("digest") == basis and bool(noted.get("whole"))


def settled(suite: str, past: Past, basis: str) -> tuple[Check, ...]:
    """The checks of a suite from its latest run with this basis; none where a later run, with
    whatever options, or this one was not well."""
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
    """In a run that missed something, whatever rested may be what was required."""
    if check["outcome"] == "skipped":
        return not missing and check.get("reason") in LASTING_RESTS
    return bool(check["outcome"] == "passed")


def checks_of(record: ValidationRecord) -> list[Check]:
    """The checks of a record; none where its report has none."""
    return record.report.get("checks", [])


def suites_of(checks: Iterable[Check]) -> list[str]:
    """The suites of some checks, each once, in their order."""
    return list(dict.fromkeys(one["suite"] for one in checks))


def _noted(record: ValidationRecord) -> RunDigest:
    return record.report.get("basis", {})


def only_open(request: ValidationRequest, earlier: Earlier) -> ValidationRequest:
    """The request for what is open. Nothing is required of it: that all of it ran before, and
    `same_rests` that it did again."""
    names = [name for name in earlier.open if name != FROM_OUTSIDE]
    options = options_of(request)
    if "--require" in options:
        at = options.index("--require")
        del options[at : at + 2]
    look = request.look_into_layers and FROM_OUTSIDE in earlier.open
    arguments = (*options, "--only", ",".join(names))
    return replace(request, arguments=arguments, look_into_layers=look)


def same_rests(record: ValidationRecord, earlier: Earlier) -> bool:
    """Whether of the suites that were open the same checks rest, for the same reasons, as in the
    whole run: a check that needs one of another suite may else have been judged alone."""
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
    """The record of a whole run: what ran now, and what passed before."""
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
    """The record with what a later run needs to rest on it."""
    if not basis:
        return record
    at = datetime.now(timezone.utc).isoformat(timespec="seconds")
    whole = not (only_of(request) or record.report.get("missing") or record.report.get("unloaded"))
    noted: RunDigest = {"at": at, "digest": basis, "whole": whole}
    return replace(record, report={**record.report, "basis": noted})
