"""The pytest plugin: gives checks their fixtures, keeps what each one found, says nothing itself."""

import time
from typing import Any, Dict, Generator, List, NamedTuple, Optional

import pytest

from validate.check import Check, CheckFailed
from validate.expected import Expected

PASSED, FAILED, WARNED, SKIPPED, ERROR = "passed", "failed", "warned", "skipped", "error"


class Found(NamedTuple):
    """What one check came to. `reason` is the skip code; seconds are wall time."""

    check: Check
    suite: str
    outcome: str
    measured: str
    cause: str
    remedy: str
    reason: str
    seconds: float


class Measure:
    """Given to a check so that it can say what it saw, also where all is well."""

    def __init__(self) -> None:
        self.text = ""

    def __call__(self, text: object) -> None:
        self.text = str(text)


class Situation(NamedTuple):
    """What checks look at: expectations, environment, root of the file system, session memory."""

    expected: Expected
    env: Dict[str, str]
    root: str
    memory: Dict[str, Any]


class Collector:
    """Registered with pytest for one run; `found` holds the results in the order of the checks."""

    def __init__(self, situation: Situation, static: bool) -> None:
        self.situation = situation
        self.static = static
        self.found = []  # type: List[Found]
        self.broken = []  # type: List[str]
        self._started = {}  # type: Dict[str, float]

    @pytest.fixture
    def image(self) -> Situation:
        """What the image promises and where to look."""
        return self.situation

    @pytest.fixture
    def expected(self) -> Expected:
        return self.situation.expected

    @pytest.fixture
    def measure(self, request: Any) -> Measure:
        """Call it with what was seen."""
        request.node.measured = Measure()
        measured = request.node.measured  # type: Measure
        return measured

    def pytest_collection_modifyitems(self, items: List[Any]) -> None:
        """Static runs leave live checks out; a test without a check is somebody's helper."""
        items[:] = [item for item in items if self._wanted(item)]

    def _wanted(self, item: Any) -> bool:
        check = check_of(item)
        return check is not None and not (self.static and check.tier == "live")

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.broken.append("{}: {}".format(report.nodeid, str(report.longrepr).strip()[-400:]))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._started[nodeid] = time.time()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Generator[None, Any, None]:
        outcome = yield
        report = outcome.get_result()
        check = check_of(item)
        if check is None or (report.when != "call" and report.passed):
            return
        self.found.append(self._judge(item, check, call, report))

    def _judge(self, item: Any, check: Check, call: Any, report: Any) -> Found:
        seconds = time.time() - self._started.get(item.nodeid, time.time())
        suite = item.fspath.purebasename.replace("test_", "", 1)
        said = getattr(item, "measured", None)
        measured = said.text if said is not None else ""
        error = call.excinfo.value if call.excinfo else None
        if report.skipped:
            code, _, why = str(error).partition(": ")
            return Found(check, suite, SKIPPED, why or measured, "", "", code, seconds)
        if isinstance(error, CheckFailed):
            outcome = FAILED if check.severity == "fail" else WARNED
            cause, remedy = error.cause or check.cause, error.remedy or check.remedy
            return Found(check, suite, outcome, error.measured, cause, remedy, "", seconds)
        if error is not None:
            text = "the check itself broke: {}: {}".format(type(error).__name__, error)
            remedy = "report it with the output of `validate --explain {}`".format(check.id)
            return Found(check, suite, ERROR, text, check.cause, remedy, "", seconds)
        return Found(check, suite, PASSED, measured, "", "", "", seconds)


def check_of(item: Any) -> Optional[Check]:
    """The check that a collected test is, if it is one."""
    found = getattr(getattr(item, "function", None), "check", None)
    return found if isinstance(found, Check) else None
