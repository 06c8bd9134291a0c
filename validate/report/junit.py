"""Write JUnit XML for CI: a suite for each run, a case for each check.

JUnit has no warnings: a warning is a passed case with the properties `outcome` and `severity`. A
run may not pass although no check failed; the reason is then a failed case of its own, so that no
CI shows the run as passed.
"""

from xml.etree import ElementTree

from validate.check import ERROR, FAILED, SKIPPED, WARNED, CheckResult
from validate.report.report import Report, counts, unmet

PROPERTIES = (
    "outcome",
    "measured",
    "cause",
    "remedy",
    "kind",
    "look",
    "action",
    "reason",
    "earlier",
)
NAMES = {"kind": "remedy_kind"}


def as_junit(*reports: Report) -> str:
    """Return the XML document of some reports."""
    root = ElementTree.Element("testsuites")
    for one in reports:
        root.append(_suite(one))
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _suite(report: Report) -> ElementTree.Element:
    number, lacking = counts(report.results), unmet(report)
    suite = ElementTree.Element(
        "testsuite",
        {
            "name": "validate " + report.image,
            "tests": str(len(report.results) + len(lacking)),
            "failures": str(number[FAILED] + len(lacking)),
            "errors": str(number[ERROR]),
            "skipped": str(number[SKIPPED]),
            "time": "{:.3f}".format(report.seconds),
        },
    )
    properties = ElementTree.SubElement(suite, "properties")
    known = {"warned": number[WARNED], "earlier": sum(bool(one.earlier) for one in report.results)}
    for name, value in known.items():
        ElementTree.SubElement(properties, "property", {"name": name, "value": str(value)})
    suite.extend([_case(one) for one in report.results])
    for text in lacking:
        case = ElementTree.SubElement(suite, "testcase", {"classname": "run", "name": _xml(text)})
        ElementTree.SubElement(case, "failure", {"message": _xml(text)})
    return suite


def _case(one: CheckResult) -> ElementTree.Element:
    attributes = {"classname": one.suite, "name": one.check.id, "time": "%.3f" % one.seconds}
    case = ElementTree.Element("testcase", attributes)
    properties = ElementTree.SubElement(case, "properties")
    values = {name: getattr(one, name) for name in PROPERTIES}
    values["severity"] = one.check.severity
    for name, value in values.items():
        if value:
            named = {"name": NAMES.get(name, name), "value": _xml(value)}
            ElementTree.SubElement(properties, "property", named)
    parts = (one.measured, one.cause, one.remedy, one.look)
    text = _xml("\n".join(filter(None, parts)))
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
    """Replace the characters that XML 1.0 does not allow by `?`.

    These are most characters below 32, surrogates, and two more.
    """
    return "".join(char if _carried(char) else "?" for char in text)


def _carried(char: str) -> bool:
    number = ord(char)
    return char in "\t\n\r" or 32 <= number < 0xD800 or 0xE000 <= number < 0xFFFE or number > 0xFFFF
