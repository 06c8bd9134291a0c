"""Write the Markdown page of a run, to paste into a ticket: findings first, then every check."""

from typing import List

from validate.check import ERROR, FAILED, SKIPPED, WARNED, CheckResult
from validate.remedy import lines as remedy_lines
from validate.report.report import MARKS, Report, summary, unmet

TITLES = ((FAILED, "Failed"), (ERROR, "Broken checks"), (WARNED, "Warned"))


def as_markdown(report: Report) -> str:
    """Return the page in GitHub's Markdown, which GitLab and the importers of Jira read too."""
    lines = ["# validate {}".format(report.image).rstrip(), "", summary(report), ""]
    lacking = ["- " + line for line in unmet(report)]
    lines += [*lacking, ""] if lacking else []
    for kind, title in TITLES:
        found = [one for one in report.results if one.outcome == kind]
        lines += ["## " + title, ""] if found else []
        for one in found:
            lines += _finding(one)
    lines += ["<details><summary>Every check</summary>", ""]
    lines += ["| check | outcome | measured |", "| --- | --- | --- |"]
    lines += [_row(one) for one in report.results]
    return "\n".join([*lines, "", "</details>", ""])


def _finding(one: CheckResult) -> List[str]:
    lines = [
        "### {}".format(one.check.id),
        "",
        one.check.proves,
        "",
        "```",
        one.measured,
        "```",
        "",
    ]
    lines += ["Cause: " + one.cause, ""] if one.cause else []
    lines += ["Action: " + one.action, ""] if one.action else []
    for label, text in remedy_lines(one.remedy, one.kind, one.look):
        lines += [label.capitalize() + ":", "", "```sh", text, "```", ""]
    return lines


def _row(one: CheckResult) -> str:
    seen = "({}) {}".format(one.reason, one.measured) if one.outcome == SKIPPED else one.measured
    cell = seen.replace("|", "\\|").replace("\n", " ")
    mark = MARKS[one.outcome] + (" at {}".format(one.earlier) if one.earlier else "")
    return "| {} | {} | {} |".format(one.check.id, mark, cell)
