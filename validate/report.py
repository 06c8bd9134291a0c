"""What a user and a program read: the table, the summary line, JSON (schema 1, see
report.schema.json), JUnit.

The JSON document: schema (1), image, tool, tier (`static` or `full`), counts {passed, failed,
warned, skipped, error: number}, skips {code: number}, seconds, exit_code, missing [required thing
that did not run], checks [{id, suite, tier, severity, proves, outcome, measured, cause, remedy,
reason, seconds}]. Outcomes: passed, failed, warned, skipped, error (the check itself broke).
A check that `imagegen validate` did not run again has `earlier`, the time at which it passed.
"""

import json
import os
import sys
from collections import Counter
from typing import Any, Dict, List, NamedTuple, Tuple
from xml.etree import ElementTree

from validate.check import Check
from validate.found import ERROR, FAILED, PASSED, SKIPPED, WARNED, Found

SCHEMA = 1
OUTCOMES = (PASSED, FAILED, WARNED, SKIPPED, ERROR)
MARKS = {PASSED: "ok", FAILED: "FAIL", WARNED: "warn", SKIPPED: "skip", ERROR: "ERROR"}
COLOURS = {PASSED: "32", FAILED: "1;31", WARNED: "33", SKIPPED: "2", ERROR: "1;31"}


class Outcome(NamedTuple):
    """One whole run."""

    image: str
    tool: str
    tier: str
    found: List[Found]
    missing: List[str]
    seconds: float
    exit_code: int


def counts(found: List[Found]) -> Dict[str, int]:
    """How many of each outcome, all five always there."""
    counted = Counter(one.outcome for one in found)
    return {outcome: counted.get(outcome, 0) for outcome in OUTCOMES}


def skips(found: List[Found]) -> Dict[str, int]:
    """Skip code -> how many checks rest for it."""
    return dict(Counter(one.reason for one in found if one.outcome == SKIPPED))


def as_data(outcome: Outcome) -> Dict[str, Any]:
    """The JSON document as data."""
    return {
        "schema": SCHEMA,
        "image": outcome.image,
        "tool": outcome.tool,
        "tier": outcome.tier,
        "counts": counts(outcome.found),
        "skips": skips(outcome.found),
        "seconds": round(outcome.seconds, 3),
        "exit_code": outcome.exit_code,
        "missing": outcome.missing,
        "checks": [row(one) for one in outcome.found],
    }


def row(one: Found) -> Dict[str, Any]:
    """A check as the JSON document has it."""
    said = {
        "id": one.check.id,
        "suite": one.suite,
        "tier": one.check.tier,
        "severity": one.check.severity,
        "proves": one.check.proves,
        "outcome": one.outcome,
        "measured": one.measured,
        "cause": one.cause,
        "remedy": one.remedy,
        "reason": one.reason,
        "seconds": round(one.seconds, 3),
    }
    return dict(said, earlier=one.earlier) if one.earlier else said


def save_all(arguments: Any, outcome: Outcome) -> None:
    """Write the reports that the command line names. Raises OSError."""
    from validate.ticket import as_markdown

    wanted = ((arguments.junit, as_junit), (arguments.json, as_json))
    for path, words in (*wanted, (arguments.markdown, as_markdown)):
        if path:
            save(path, words(outcome))


def save(path: str, text: str) -> None:
    """Whole or not at all, except where the path is no file, such as a pipe or /dev/stderr."""
    if path == "-":
        sys.stdout.write(text)
        return
    direct = os.path.exists(path) and not os.path.isfile(path)
    with open(path if direct else path + ".part", "w", encoding="utf-8") as file:
        file.write(text)
    if not direct:
        os.rename(path + ".part", path)


def as_json(outcome: Outcome) -> str:
    return json.dumps(as_data(outcome), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def table(outcome: Outcome, colour: bool) -> str:
    """A line a check; below a finding its cause and the line to paste. Checks that rest one after
    the other for the same reason share a line."""
    if not outcome.found:
        return ""
    width = max(len(one.check.id) for one in outcome.found)
    lines = []
    for group in _together(outcome.found):
        one = group[0]
        mark = _paint("{:<5}".format(MARKS[one.outcome]), COLOURS[one.outcome], colour)
        seen = one.measured.replace("\n", " | ")
        said = "({}) {}".format(one.reason, seen) if one.outcome == SKIPPED else seen
        said += "; and the next {} checks".format(len(group) - 1) if len(group) > 1 else ""
        lines.append("{:<{}}  {}  {}".format(one.check.id, width, mark, said).rstrip())
        indent = " " * (width + 9)
        if one.cause:
            lines.append("{}cause:  {}".format(indent, one.cause))
        if one.remedy:
            lines.append("{}remedy: {}".format(indent, one.remedy))
    return "\n".join(lines)


def _together(found: List[Found]) -> List[List[Found]]:
    """Neighbours that rest for the same reason in one group; every other check in one of its
    own."""
    groups: List[List[Found]] = []
    for one in found:
        if groups and one.outcome == SKIPPED and _why(one) == _why(groups[-1][0]):
            groups[-1].append(one)
        else:
            groups.append([one])
    return groups


def _why(one: Found) -> Tuple[str, str, str, str]:
    return one.suite, one.outcome, one.reason, one.measured


def _paint(text: str, code: str, colour: bool) -> str:
    return "\033[{}m{}\033[0m".format(code, text) if colour else text


def summary(outcome: Outcome) -> str:
    """One line: `37 passed, 1 failed, 2 warned, 6 skipped (no-rdma-hw 4, …) in 3.4 s`."""
    number = counts(outcome.found)
    why = ", ".join("{} {}".format(c, n) for c, n in sorted(skips(outcome.found).items()))
    skipped = "{} skipped".format(number[SKIPPED]) + (" ({})".format(why) if why else "")
    failed = "{} failed".format(number[FAILED] + number[ERROR])
    parts = [
        "{} passed".format(number[PASSED]),
        failed,
        "{} warned".format(number[WARNED]),
        skipped,
    ]
    return "{} in {:.1f} s".format(", ".join(parts), outcome.seconds)


def from_data(data: Dict[str, Any]) -> Outcome:
    """The outcome that a JSON document of ours tells of."""
    host = data.get("host", "")
    image = "{} in {}".format(data["image"], host) if host else data["image"]
    found = [_from_row(one) for one in data["checks"]]
    missing = list(data.get("missing", ()))
    code, seconds = int(data["exit_code"]), float(data.get("seconds", 0))
    tool, tier = str(data.get("tool", "")), str(data.get("tier", ""))
    return Outcome(image, tool, tier, found, missing, seconds, code)


def _from_row(said: Dict[str, Any]) -> Found:
    """A row of an older release may have fewer fields."""
    fixed = [str(said.get(name, "")) for name in ("id", "proves", "severity", "tier")]
    check = Check(fixed[0], fixed[1], fixed[2], fixed[3], "", "")
    names = ("outcome", "measured", "cause", "remedy", "reason", "earlier")
    more = {name: str(said.get(name, "")) for name in names}
    return Found(check, said["suite"], seconds=float(said.get("seconds", 0)), **more)


def as_junit(*outcomes: Outcome) -> str:
    """JUnit for CI. A warning is a passed case with a property: JUnit has no word for it."""
    root = ElementTree.Element("testsuites")
    for one in outcomes:
        root.append(_suite(one))
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _suite(outcome: Outcome) -> ElementTree.Element:
    number = counts(outcome.found)
    suite = ElementTree.Element(
        "testsuite",
        {
            "name": "validate " + outcome.image,
            "tests": str(len(outcome.found)),
            "failures": str(number[FAILED]),
            "errors": str(number[ERROR]),
            "skipped": str(number[SKIPPED]),
            "time": "{:.3f}".format(outcome.seconds),
        },
    )
    properties = ElementTree.SubElement(suite, "properties")
    known = {"warned": number[WARNED], "earlier": sum(bool(one.earlier) for one in outcome.found)}
    for name, value in known.items():
        ElementTree.SubElement(properties, "property", {"name": name, "value": str(value)})
    for one in outcome.found:
        suite.append(_case(one))
    return suite


def _case(one: Found) -> ElementTree.Element:
    attributes = {"classname": one.suite, "name": one.check.id, "time": "%.3f" % one.seconds}
    case = ElementTree.Element("testcase", attributes)
    properties = ElementTree.SubElement(case, "properties")
    names = ("outcome", "measured", "cause", "remedy", "reason", "earlier")
    said = {name: getattr(one, name) for name in names}
    said["severity"] = one.check.severity
    for name, value in said.items():
        if value:
            ElementTree.SubElement(properties, "property", {"name": name, "value": _xml(value)})
    text = _xml("\n".join(part for part in (one.measured, one.cause, one.remedy) if part))
    if one.outcome in (FAILED, ERROR):
        tag = "failure" if one.outcome == FAILED else "error"
        ElementTree.SubElement(case, tag, {"message": _xml(one.measured)}).text = text
    elif one.outcome == SKIPPED:
        ElementTree.SubElement(case, "skipped", {"message": _xml(one.reason + ": " + one.measured)})
    elif one.outcome == WARNED:
        ElementTree.SubElement(case, "system-out").text = "warning: " + text
    elif one.earlier:
        note = "passed at {}, not run again".format(one.earlier)
        ElementTree.SubElement(case, "system-out").text = note
    return case


def _xml(text: str) -> str:
    """Without the control characters that XML 1.0 cannot carry."""
    return "".join(char if char in "\t\n" or ord(char) >= 32 else "?" for char in text)
