"""Name the cause of a failed build, so that a summary can group failures and a retry can choose."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_PATTERNS: tuple[tuple[str, str], ...] = (
    ("cancelled", r"context canceled"),
    ("disk full", r"no space left on device|disk quota exceeded|you don't have enough free space"),
    (
        "out of memory",
        r"out of memory|cannot allocate memory|exit code: 137|virtual memory exhausted",
    ),
    (
        "network",
        (
            r"temporary failure (?:in name resolution|resolving)|could not resolve|no such host"
            r"|connection (?:timed out|refused|reset|aborted|failed)|network is unreachable"
            r"|no route to host|read timed out|i/o timeout|tls handshake timeout"
            r"|remote end closed connection|unexpected eof|50[234] +(?:bad gateway|service|gateway)"
            r"|newconnectionerror|max retries exceeded|incompleteread"
        ),
    ),
    ("certificate", r"certificate verify failed|self[- ]signed certificate|x509: certificate"),
    (
        "version conflict",
        (
            r"unmet dependencies|resolutionimpossible|conflicting dependencies|you have held broken"
            r"|cannot install .* because these package versions"
        ),
    ),
    (
        "upstream gone",
        (
            r"unable to locate package|has no installation candidate|no matching distribution found"
            r"|version '[^']*' for '[^']*' was not found|manifest unknown"
            r"|\b4(?:03|04|10):? +(?:not found|forbidden|gone|client error)"
            r"|returned error: 4(?:03|04|10)"
        ),
    ),
    (
        "compile error",
        (
            r"fatal error: .*no such file|undefined reference to|collect2: error|cmake error"
            r"|ninja: build stopped|failed building wheel|make(?:\[\d+\])?: \*\*\*"
        ),
    ),
    ("dockerfile", r"dockerfile parse error|unknown instruction|failed to compute cache key"),
)

CAUSES = (*(name for name, _ in _PATTERNS), "command")


def cause_of(error: str, log: Sequence[str] = ()) -> str:
    """Find the first of CAUSES that matches the engine's error or the step's last lines.

    `command` means that none matches.
    """
    text = "\n".join((error, *log)).lower()
    return next((name for name, pattern in _PATTERNS if re.search(pattern, text)), "command")
