"""What one check came to. Nothing here needs pytest: reports are also written where there is
none."""

from typing import NamedTuple

from validate.check import Check

PASSED, FAILED, WARNED, SKIPPED, ERROR = "passed", "failed", "warned", "skipped", "error"


class Found(NamedTuple):
    """A check and its outcome. `reason` is the skip code; seconds are wall time; `earlier` is the
    time of the run in which it passed, where that was not this one."""

    check: Check
    suite: str
    outcome: str
    measured: str
    cause: str = ""
    remedy: str = ""
    reason: str = ""
    seconds: float = 0.0
    earlier: str = ""
