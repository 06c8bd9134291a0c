"""Turn failed validations into errors for the user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imagegen.config.payload import expose_validate
from imagegen.errors import Problem, ValidationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from imagegen.model.validation import ValidationRecord


def failed_checks(record: ValidationRecord) -> list[str]:
    """List the failed checks of a record, one line each, with the remedy where there is one."""
    expose_validate()
    from validate.remedy import lines as remedy_lines

    lines = []
    for check in record.report.get("checks", []):
        if check["outcome"] in ("failed", "error"):
            lines.append(f"{check['id']}: {check['measured']}")
            said = (check.get(name, "") for name in ("remedy", "remedy_kind", "look"))
            lines += [f"  {label}: {text}" for label, text in remedy_lines(*map(str, said))]
    return lines or [f"validate ended with exit code {record.report.get('exit_code')}"]


def validation_failures(records: Mapping[str, ValidationRecord]) -> ValidationError | None:
    """Make one error with a problem for each image that did not pass; None where all passed."""
    lost = {ref: record for ref, record in records.items() if not record.passed}
    if not lost:
        return None
    return ValidationError(
        *(
            Problem(f"`{ref}` did not pass", evidence=tuple(failed_checks(record)))
            for ref, record in lost.items()
        )
    )
