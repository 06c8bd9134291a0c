"""Write and read the JSON document of a run, schema 1 (see report.schema.json).

It has: schema (1), image, tool, tier (`static`, `preflight` or `full`), counts {passed, failed,
warned, skipped, error: number}, skips {code: number}, seconds, exit_code, missing [required thing
that did not run], checks [{id, suite, tier, severity, proves, outcome, measured, cause, remedy,
remedy_kind, look, action, reason, seconds}]; of a preflight also verdict {action, reason}.
`remedy_kind` says where the remedy has to be done (see remedy.py); `look` is a command that only
looks; `action` is what the start of a job has to lead to.
Outcomes: passed, failed, warned, skipped, error (the check itself broke). A check that `imagegen
validate` did not run again has `earlier`, the time at which it passed.
"""

import json
from typing import Any, Dict

from validate.check import Check, CheckResult
from validate.remedy import Remedy
from validate.report.report import PREFLIGHT, Report, counts, skips
from validate.report.screen import decision_of

REPORT_SCHEMA = 1


def as_json(report: Report) -> str:
    """Return the document of a report as text."""
    return json.dumps(as_data(report), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def as_data(report: Report) -> Dict[str, Any]:
    """Return the document of a report as data."""
    more: Dict[str, Any] = {"unloaded": list(report.unloaded)} if report.unloaded else {}
    if report.tier == PREFLIGHT:
        more["verdict"] = dict(decision_of(report)._asdict())
    return {
        **more,
        **report.figures,
        "schema": REPORT_SCHEMA,
        "image": report.image,
        "tool": report.tool,
        "tier": report.tier,
        "counts": counts(report.results),
        "skips": skips(report.results),
        "seconds": round(report.seconds, 3),
        "exit_code": report.exit_code,
        "missing": report.missing,
        "checks": [row(one) for one in report.results],
    }


def row(one: CheckResult) -> Dict[str, Any]:
    """Return the row of a check in the document."""
    fields = {
        "id": one.check.id,
        "suite": one.suite,
        "tier": one.check.tier,
        "severity": one.check.severity,
        "proves": one.check.proves,
        "outcome": one.outcome,
        "measured": one.measured,
        "cause": one.cause,
        "remedy": one.remedy,
        "remedy_kind": one.kind,
        "look": one.look,
        "action": one.action,
        "reason": one.reason,
        "seconds": round(one.seconds, 3),
    }
    return dict(fields, earlier=one.earlier) if one.earlier else fields


def from_data(data: Dict[str, Any]) -> Report:
    """Read a report from a document."""
    host = data.get("host", "")
    image = "{} in {}".format(data["image"], host) if host else data["image"]
    results = [_from_row(one) for one in data["checks"]]
    missing = list(data.get("missing", ()))
    code, seconds = int(data["exit_code"]), float(data.get("seconds", 0))
    tool, tier = str(data.get("tool", "")), str(data.get("tier", ""))
    unloaded = tuple(data.get("unloaded", ()))
    return Report(image, tool, tier, results, missing, seconds, code, unloaded)


def _from_row(fields: Dict[str, Any]) -> CheckResult:
    """Read a result from a row; a row of an older release may have fewer fields."""
    fixed = [str(fields.get(name, "")) for name in ("id", "proves", "severity", "tier")]
    check = Check(fixed[0], fixed[1], fixed[2], fixed[3], "", Remedy())
    names = ("outcome", "measured", "cause", "remedy", "reason", "earlier", "look", "action")
    more = {name: str(fields.get(name, "")) for name in names}
    more["kind"] = str(fields.get("remedy_kind", ""))
    return CheckResult(check, fields["suite"], seconds=float(fields.get("seconds", 0)), **more)
