"""Show a run as a table on a terminal: a line for each check, cause and remedy below a finding."""

from typing import List, Tuple

from validate.check import ERROR, FAILED, PASSED, SKIPPED, WARNED, CheckResult
from validate.remedy import lines as remedy_lines
from validate.report.report import MARKS, Report, summary, unmet

SCREEN = 24
"""Lines that a terminal shows at once. Of a longer table the user sees the end first."""
COLOURS = {PASSED: "32", FAILED: "1;31", WARNED: "33", SKIPPED: "2", ERROR: "1;31"}


def as_table(report: Report, colour: bool) -> str:
    """Return the table: a line for each check; below a finding its cause and remedy.

    Checks in a row that are skipped for the same reason share a line. At the end of a long table
    the failed checks are shown again.
    """
    if not report.results:
        return ""
    width = max(len(one.check.id) for one in report.results)
    lines = []
    for group in _together(report.results):
        more = len(group) - 1
        also = "; and the next {} checks".format(more) if more > 1 else "; and the next check"
        lines += _lines(group[0], width, also if more else "", colour)
    failed = [one for one in report.results if one.outcome in (FAILED, ERROR)]
    if failed and len(lines) > SCREEN:
        lines += ["", "What failed, in the order in which to fix it:", ""]
        for one in failed:
            lines += _lines(one, width, "", colour)
    return "\n".join(lines)


def as_page(report: Report, colour: bool) -> str:
    """Return the table, and below it why the run does not pass and its sum."""
    table = as_table(report, colour)
    lines = [one + "\n" for one in (*unmet(report), summary(report))]
    return "".join([table + "\n\n" if table else "", *lines])


def _lines(one: CheckResult, width: int, also: str, colour: bool) -> List[str]:
    mark = paint("{:<5}".format(MARKS[one.outcome]), COLOURS[one.outcome], colour)
    seen = one.measured.replace("\n", " | ")
    text = "({}) {}".format(one.reason, seen) if one.outcome == SKIPPED else seen
    indent = " " * (width + 9)
    lines = ["{:<{}}  {}  {}".format(one.check.id, width, mark, text + also).rstrip()]
    below = [("cause", one.cause)] if one.cause else []
    below += [("action", one.action)] if one.action else []
    below += remedy_lines(one.remedy, one.kind, one.look)
    return lines + ["{}{:<7} {}".format(indent, label + ":", text) for label, text in below]


def _together(results: List[CheckResult]) -> List[List[CheckResult]]:
    """Group neighbours that are skipped for the same reason; other checks are groups of one."""
    groups: List[List[CheckResult]] = []
    for one in results:
        if groups and one.outcome == SKIPPED and _why(one) == _why(groups[-1][0]):
            groups[-1].append(one)
        else:
            groups.append([one])
    return groups


def _why(one: CheckResult) -> Tuple[str, str, str, str]:
    return one.suite, one.outcome, one.reason, one.measured


def paint(text: str, code: str, colour: bool) -> str:
    """Return a text in a colour of terminals, if it is to have one."""
    return "\033[{}m{}\033[0m".format(code, text) if colour else text
