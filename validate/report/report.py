"""What a user and a program read: the table, the summary line, and JSON (schema 1, see
report.schema.json). JUnit is in `junit`, Markdown in `ticket`.

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

from validate.catalogue import ALIASES
from validate.check import Check
from validate.found import ERROR, FAILED, PASSED, SKIPPED, WARNED, Found

SCHEMA = 1
OUTCOMES = (PASSED, FAILED, WARNED, SKIPPED, ERROR)
MARKS = {PASSED: "ok", FAILED: "FAIL", WARNED: "warn", SKIPPED: "skip", ERROR: "ERROR"}
SCREEN = 24
"""Lines that a terminal shows at once: of a longer table the end is what the eye meets."""
COLOURS = {PASSED: "32", FAILED: "1;31", WARNED: "33", SKIPPED: "2", ERROR: "1;31"}


class Outcome(NamedTuple):
    """One whole run. `missing` is what was required and did not run, `unloaded` suites that did not
    load, with the reason."""

    image: str
    tool: str
    tier: str
    found: List[Found]
    missing: List[str]
    seconds: float
    exit_code: int
    unloaded: Tuple[str, ...] = ()


def counts(found: List[Found]) -> Dict[str, int]:
    """How many of each outcome, all five always there."""
    counted = Counter(one.outcome for one in found)
    return {outcome: counted.get(outcome, 0) for outcome in OUTCOMES}


def skips(found: List[Found]) -> Dict[str, int]:
    """Skip code -> how many checks rest for it."""
    return dict(Counter(one.reason for one in found if one.outcome == SKIPPED))


def as_data(outcome: Outcome) -> Dict[str, Any]:
    """The JSON document as data."""
    more = {"unloaded": list(outcome.unloaded)} if outcome.unloaded else {}
    return {
        **more,
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
    from validate.report.junit import as_junit
    from validate.report.markdown import as_markdown

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
    the other for the same reason share a line. A long table ends with what failed once more."""
    if not outcome.found:
        return ""
    width = max(len(one.check.id) for one in outcome.found)
    lines = []
    for group in _together(outcome.found):
        more = len(group) - 1
        also = "; and the next {} checks".format(more) if more > 1 else "; and the next check"
        lines += _lines(group[0], width, also if more else "", colour)
    failed = [one for one in outcome.found if one.outcome in (FAILED, ERROR)]
    if failed and len(lines) > SCREEN:
        lines += ["", "What failed, in the order in which to mend it:", ""]
        for one in failed:
            lines += _lines(one, width, "", colour)
    return "\n".join(lines)


def _lines(one: Found, width: int, also: str, colour: bool) -> List[str]:
    mark = _paint("{:<5}".format(MARKS[one.outcome]), COLOURS[one.outcome], colour)
    seen = one.measured.replace("\n", " | ")
    said = "({}) {}".format(one.reason, seen) if one.outcome == SKIPPED else seen
    indent = " " * (width + 9)
    lines = ["{:<{}}  {}  {}".format(one.check.id, width, mark, said + also).rstrip()]
    lines += ["{}cause:  {}".format(indent, one.cause)] if one.cause else []
    return lines + (["{}remedy: {}".format(indent, one.remedy)] if one.remedy else [])


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


def unmet(outcome: Outcome) -> List[str]:
    """Why a run is no pass although no check failed: what was required and rests, with the reason,
    suites that did not load, and a run in which nothing was executed."""
    found = ["required, but it did not run: " + _resting(name, outcome) for name in outcome.missing]
    found += ["a suite does not load: " + text for text in outcome.unloaded]
    number = counts(outcome.found)
    if not sum(number[name] for name in (PASSED, FAILED, WARNED, ERROR)):
        found.append("no check ran: that is no pass")
    return found


def _resting(name: str, outcome: Outcome) -> str:
    """A required thing, with why it did not run: the device that is absent, else what its suite
    rests for."""
    absent = ("no-{}-hw".format(name), name + "-not-passed")
    rests = [one for one in outcome.found if one.outcome == SKIPPED and one.reason in absent]
    rests += [
        one
        for one in outcome.found
        if one.outcome == SKIPPED and one.suite == ALIASES.get(name, name)
    ]
    return "{} ({}: {})".format(name, rests[0].reason, rests[0].measured) if rests else name


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
    unloaded = tuple(data.get("unloaded", ()))
    return Outcome(image, tool, tier, found, missing, seconds, code, unloaded)


def _from_row(said: Dict[str, Any]) -> Found:
    """A row of an older release may have fewer fields."""
    fixed = [str(said.get(name, "")) for name in ("id", "proves", "severity", "tier")]
    check = Check(fixed[0], fixed[1], fixed[2], fixed[3], "", "")
    names = ("outcome", "measured", "cause", "remedy", "reason", "earlier")
    more = {name: str(said.get(name, "")) for name in names}
    return Found(check, said["suite"], seconds=float(said.get("seconds", 0)), **more)
