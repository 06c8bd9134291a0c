"""Write the reports of `validate` on the host: add a check to one, write several to files.

Words and formats are those of the package `validate`, which is installed with the tool.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from imagegen.config.payload import expose_validate
from imagegen.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from imagegen.errors import Problem
    from imagegen.model.validation import Check, Report, ValidationRecord

FAILED, NOT_RUN = 1, 3
"""Exit codes of `validate`."""


@dataclass(frozen=True)
class Files:
    """Name the files to write reports to; None means that no such file is written."""

    json: Path | None = None
    junit: Path | None = None
    markdown: Path | None = None

    def must_have_folders(self) -> None:
        """Raise ConfigError where a folder is missing: before the work, not after it."""
        for path in (self.json, self.junit, self.markdown):
            if path is not None and not path.absolute().parent.is_dir():
                raise ConfigError.of(
                    f"cannot write `{path}`: there is no folder `{path.parent}`",
                    hint=f"mkdir -p {path.parent}",
                )


def read_report(text: str | bytes) -> Report:
    """Read a report of `validate --json`. Raises ValueError unless it is a JSON object."""
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("a report is a JSON object")
    return cast("Report", found)


def with_check(
    report: Report, check_id: str, outcome: str, measured: str, *, reason: str = ""
) -> Report:
    """Add to a report a check that was made on the host, one of validate/host_checks.py."""
    expose_validate()
    from validate.check import CheckResult
    from validate.host_checks import HOST_CHECKS
    from validate.report.json_document import row

    suite, check = next(entry for entry in HOST_CHECKS if entry[1].id == check_id)
    found = outcome == "failed"
    result = CheckResult(check, suite, outcome, measured, reason=reason)
    if found:
        result = result._replace(cause=check.cause).with_remedy(check.remedy)
    made = cast("Check", row(result))
    counts = {**report["counts"], outcome: report["counts"].get(outcome, 0) + 1}
    skips = {**report.get("skips", {})}
    if reason:
        skips[reason] = skips.get(reason, 0) + 1
    return {
        **report,
        "checks": [*report["checks"], made],
        "counts": counts,
        "skips": skips,
        "exit_code": FAILED if found else report["exit_code"],
    }


def of_record(record: ValidationRecord) -> Report:
    """Make the report of one image, with the name and the id that were validated."""
    return {**record.report, "image": record.tag, "id": record.image_id}


def of_problem(ref: str, problem: Problem) -> Report:
    """Make the report of an image in which `validate` could not run: nothing was checked."""
    broken: Check = {
        "id": "image.validate",
        "suite": "image",
        "tier": "static",
        "severity": "fail",
        "proves": "`validate` runs in the image",
        "outcome": "error",
        "reason": "",
        "measured": problem.text,
        "cause": "; ".join(problem.evidence),
        "remedy": problem.hint,
        "seconds": 0.0,
    }
    return {
        "schema": 1,
        "image": ref,
        "tool": "",
        "tier": "full",
        "counts": dict.fromkeys(("passed", "failed", "warned", "skipped"), 0) | {"error": 1},
        "skips": {},
        "seconds": 0.0,
        "exit_code": FAILED,
        "missing": [],
        "checks": [broken],
    }


def save(files: Files, reports: Sequence[Mapping[str, object]]) -> None:
    """Write the files that were asked for; a file is never half written.

    Raises ConfigError where one cannot be written.
    """
    expose_validate()
    from validate.report.files import save as write
    from validate.report.json_document import from_data
    from validate.report.junit import as_junit
    from validate.report.markdown import as_markdown

    outcomes = [from_data(dict(report)) for report in reports]
    code = max((one.exit_code for one in outcomes), default=NOT_RUN)
    places = "hosts" if any("host" in report for report in reports) else "images"
    document = {"schema": 1, "exit_code": code, places: list(reports)}
    texts = (
        (files.json, json.dumps(document, indent=2, sort_keys=True) + "\n"),
        (files.junit, as_junit(*outcomes)),
        (files.markdown, "\n".join(as_markdown(one) for one in outcomes)),
    )
    try:
        for path, text in texts:
            if path is not None:
                write(str(path.absolute()), text)
    except OSError as error:
        raise ConfigError.of(
            f"cannot write `{error.filename}`: {(error.strerror or '').lower()}",
            hint="name a file in a folder that you can write in",
        ) from None
