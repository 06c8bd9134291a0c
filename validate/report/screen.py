"""Show a preflight on one screen: what was found, and the line for a scheduler at its end."""

from typing import List

from validate.check import ERROR, FAILED, WARNED, CheckResult
from validate.preflight import Decision, verdict
from validate.remedy import lines as remedy_lines
from validate.report.report import MARKS, Report, summary, unmet
from validate.report.table import COLOURS, SCREEN, paint

MOST_LETTERS = 240
"""The most of a text that a line of the screen shows: three lines of a terminal."""


def decision_of(report: Report) -> Decision:
    """Return what a run leads to."""
    return verdict(report.results, unmet(report))


def as_screen(report: Report, colour: bool) -> str:
    """Return the page: failures first, then warnings, as many as one screen holds.

    The last line is `ACTION: REASON`; ACTION is `start` if nothing failed.
    """
    found = [one for one in report.results if one.outcome in (FAILED, ERROR)]
    found += [one for one in report.results if one.outcome == WARNED]
    last = [*unmet(report), summary(report), str(decision_of(report))]
    lines: List[str] = []
    for number, one in enumerate(found):
        more = _finding(one, colour)
        if lines and len(lines) + len(more) + len(last) + 2 > SCREEN:
            left = ", ".join(rest.check.id for rest in found[number:])
            lines.append("and {} more: {}".format(len(found) - number, left))
            break
        lines += more
    return "\n".join([*lines, *([""] if lines else []), *last]) + "\n"


def _finding(one: CheckResult, colour: bool) -> List[str]:
    mark = paint(MARKS[one.outcome], COLOURS[one.outcome], colour)
    lines = ["{}  {}  {}".format(mark, one.check.id, _short(one.measured))]
    below = [("cause", one.cause)] if one.cause else []
    below += [("action", one.action)] if one.action else []
    below += remedy_lines(one.remedy, one.kind, one.look)
    return lines + ["      {}: {}".format(label, _short(text)) for label, text in below]


def _short(text: str) -> str:
    line = " | ".join(text.splitlines())
    return line if len(line) <= MOST_LETTERS else line[: MOST_LETTERS - 1] + "…"
