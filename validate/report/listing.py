"""Show the catalogue of checks: `--list`, `--explain ID`, and the page CHECKS.md."""

from typing import List, Sequence, Tuple

from validate.catalogue import LEFT_OUT, ON_REQUEST, Entry, all_checks, suite_names
from validate.check import Check
from validate.host_checks import HOST_CHECKS
from validate.remedy import lines as remedy_lines

UNKNOWN = "depends on what is measured"

HEAD = """\
# The checks of `validate`

Written by `python -m validate --catalogue > validate/CHECKS.md`; a test holds it current.
Severity `fail` makes the exit code 1, `warn` does not, `info` only says what is there.
`static` needs no device, no service, no privilege and no network; `live` looks at devices, limits,
services and the driver; `asked` runs where its own option asks for it. What is absent is skipped
with a reason code; what is there and cannot be used fails. `validate --explain ID` says the same
inside a container.
"""


def one_line_each() -> List[str]:
    """List every check in one line: id, suite, tier, severity, what it proves."""
    rows = [
        (e.check.id, e.suite, e.check.tier, e.check.severity, e.check.proves) for e in all_checks()
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    return [
        "  ".join(["{:<{}}".format(row[i], widths[i]) for i in range(4)] + [row[4]]) for row in rows
    ]


def explanation(check_id: str) -> List[str]:
    """Explain one check; empty if there is no such check."""
    for suite, one in [*all_checks(), *HOST_CHECKS]:
        if one.id == check_id:
            fields = [("proves", one.proves), ("suite", suite), ("tier", one.tier)]
            fields += [("severity", one.severity), ("probe", one.probe)]
            rows = [*fields, ("cause", one.cause or UNKNOWN), *_remedy(one)]
            after = ", ".join(one.needs)
            rows += [("after", after)] if after else []
            return [check_id] + ["  {:<9} {}".format(*pair) for pair in rows]
    return []


def _remedy(one: Check) -> Sequence[Tuple[str, str]]:
    given = one.remedy
    return remedy_lines(given, given.kind, given.look) or [("remedy", UNKNOWN)]


def page() -> str:
    """Write the page CHECKS.md."""
    entries = all_checks()
    parts = [HEAD]
    for suite in [*suite_names(), *ON_REQUEST]:
        parts.append("## {}\n".format(suite))
        parts += [_section(entry) for entry in entries if entry.suite == suite]
    parts.append("## Made on the host by `imagegen validate`\n")
    parts += [_section(Entry(suite, check)) for suite, check in HOST_CHECKS]
    parts.append("## Left out\n")
    parts.append("\n".join("- {}: {}".format(*pair) for pair in sorted(LEFT_OUT.items())) + "\n")
    return "\n".join(parts)


def _section(entry: Entry) -> str:
    one = entry.check
    lines = ["### {} ({}, {})\n".format(one.id, one.severity, one.tier), one.proves + "\n"]
    lines.append("- probe: " + one.probe)
    lines.append("- cause: " + (one.cause or UNKNOWN))
    for label, text in _remedy(one):
        lines.append("- {}: {}".format(label, text if text == UNKNOWN else "`{}`".format(text)))
    if one.needs:
        lines.append("- after: " + ", ".join(one.needs))
    return "\n".join(lines) + "\n"
