"""Give checks their fixtures in pytest and collect their results, without printing."""

import os
import signal
import time
from typing import (
    Any,
    Callable,
    Dict,
    Generator,
    List,
    Optional,
    Sequence,
    Tuple,
)

import pytest

from validate import catalogue, endings, preflight
from validate.check import (
    ERROR,
    FAILED,
    PASSED,
    SKIP_CODES,
    SKIPPED,
    WARNED,
    Check,
    CheckFailed,
    CheckResult,
    CheckWarned,
    skip,
)
from validate.expected import Expected
from validate.fixtures import Measure, Situation
from validate.probes import crashes
from validate.process import BROKEN, patience
from validate.remedy import Remedy, only_look
from validate.requirements import out_of_profile
from validate.restrictions import TEMPORARY, restriction, restriction_in
from validate.run_options import RunOptions as RunOptions

MOST_LETTERS = 200
"""The most of an error's text that is shown."""

CEILING_SECONDS = 240
"""The time limit of one check on an idle machine, whatever it waits for. It is longer than the sum
of the limits of the commands of a check.
"""


class Collector:
    """Collect the results of one run, as a pytest plugin, in the order of the checks."""

    def __init__(
        self, situation: Situation, options: RunOptions, files: Sequence[str] = ()
    ) -> None:
        """Take the files of the chosen suites, in the order in which they run."""
        self.situation = situation
        self.files = tuple(files)
        self._places = {path: place for place, path in enumerate(files)}
        self.options = options
        self.results: List[CheckResult] = []
        self.unloaded: List[str] = []
        self._started: Dict[str, float] = {}
        self._broken_before = 0

    @pytest.fixture
    def image(self) -> Situation:
        """Give a check what the image promises and where to look."""
        return self.situation

    @pytest.fixture
    def expected(self) -> Expected:
        """Give a check the expectations of the image."""
        return self.situation.expected

    @pytest.fixture
    def measure(self, request: Any) -> Measure:
        """Give a check the function that it calls with what it saw."""
        request.node.measured = Measure()
        measured: Measure = request.node.measured
        return measured

    def pytest_ignore_collect(self, collection_path: Any) -> Optional[bool]:
        """Leave out the shipped suites that were not chosen: pytest is given their folder."""
        path = str(collection_path)
        shipped = os.path.dirname(path) == catalogue.SUITES and path.endswith(".py")
        return True if shipped and path not in self._places else None

    def pytest_collection_modifyitems(self, items: List[Any]) -> None:
        """Put the checks in order.

        Live checks of static runs are dropped, and test functions that are not checks.
        """
        last = len(self._places)
        chosen = [item for item in items if self._wanted(item)]
        chosen.sort(key=lambda item: self._places.get(str(item.path), last))
        items[:] = chosen

    def _wanted(self, item: Any) -> bool:
        check = self._check(item)
        if check is None or (self.options.static and check.tier != "static"):
            return False
        if self.options.preflight:
            return preflight.belongs(_suite_of(item), check) or self._is_own(item)
        return check.tier != "asked" or self.options.loopback

    def _check(self, item: Any) -> Optional[Check]:
        """Return the check of a collected test; make one for a plain test of the user's."""
        found = _check_of(item)
        if found is None and self._is_own(item):
            words = item.name.replace("test_", "", 1).replace("[local]", "")
            proves = " ".join((item.function.__doc__ or words.replace("_", " ")).split())
            name = "{}.{}".format(_suite_of(item), words)
            return Check(name, proves, "fail", "static", "", Remedy())
        return found

    def _is_own(self, item: Any) -> bool:
        return str(item.path) in self.options.own.values()

    def pytest_collectreport(self, report: Any) -> None:
        """Note a suite that could not be loaded."""
        if report.failed:
            self.unloaded.append(
                "{}: {}".format(report.nodeid, str(report.longrepr).strip()[-400:])
            )

    def pytest_internalerror(self, excrepr: Any) -> None:
        """Note an internal error of pytest."""
        self.unloaded.append(str(excrepr).strip()[-400:])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Note when a test started."""
        self._started[nodeid] = time.time()
        self._broken_before = len(BROKEN)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: Any) -> None:
        """Skip a check whose component is not in the recipe, or whose needs did not pass."""
        suite, check = _suite_of(item), self._check(item)
        why = "" if self._is_own(item) else catalogue.not_applicable(suite, self.situation.expected)
        if why:
            skip("not-in-recipe", why)
        live = check is not None and check.tier != "static"
        if live and out_of_profile(suite, self.options.profile):
            skip("not-in-profile", "the profile is {}".format(self.options.profile))
        blocked = self._blocked(check.needs if check else ())
        if blocked:
            skip(*blocked)

    def _blocked(self, needs: Tuple[str, ...]) -> Optional[Tuple[str, str]]:
        """Return why the needed checks make this one skip: code and reason; None if it may run."""
        for one in self.results:
            if one.check.id not in needs:
                continue
            if one.outcome in (FAILED, ERROR):
                return "blocked-by", one.check.id
            if one.outcome == SKIPPED:
                return one.reason, one.measured
        return None

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: Any) -> Generator[None, Any, None]:
        """Limit the time of each check: a check may wait for something that has no limit."""
        before = signal.signal(signal.SIGALRM, _time_is_up(_suite_of(item)))
        signal.alarm(int(CEILING_SECONDS * patience()))
        yield
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Generator[None, Any, None]:
        """Add the result of a check when it has run or was skipped."""
        outcome = yield
        report = outcome.get_result()
        check = self._check(item)
        if check is None or (report.when != "call" and report.passed):
            return
        self.results.append(self._judge(item, check, call, report))

    def _judge(self, item: Any, check: Check, call: Any, report: Any) -> CheckResult:
        seconds = time.time() - self._started.get(item.nodeid, time.time())
        suite = _suite_of(item)
        seen = getattr(item, "measured", None)
        measured = seen.text if seen is not None else ""
        error = call.excinfo.value if call.excinfo else None
        if hasattr(report, "wasxfail"):
            return CheckResult(check, suite, WARNED, report.wasxfail or str(error), seconds=seconds)
        if report.skipped and not restriction_in(str(error)):
            code, _, why = str(error).partition(": ")
            if code not in SKIP_CODES:
                code, why = "not-applicable", str(error)
            return CheckResult(check, suite, SKIPPED, why or measured, "", "", code, seconds)
        if error is not None and not isinstance(error, KeyboardInterrupt):
            error = _with_restriction(self._with_cause(error))
        if isinstance(error, CheckFailed) and self._is_reported(error):
            return CheckResult(
                check, suite, SKIPPED, TEMPORARY.check, reason="blocked-by", seconds=seconds
            )
        if isinstance(error, CheckFailed):
            warns = isinstance(error, CheckWarned) or check.severity != "fail"
            remedy = error.remedy if error.remedy.given else check.remedy
            cause, outcome = error.cause or check.cause, WARNED if warns else FAILED
            found = CheckResult(check, suite, outcome, error.measured, cause, seconds=seconds)
            return found.with_remedy(remedy)
        if isinstance(error, AssertionError) and self._is_own(item):
            found = CheckResult(check, suite, FAILED, str(error), check.cause, seconds=seconds)
            return found.with_remedy(check.remedy)
        if error is not None:
            text = "the check itself broke: {}: {}".format(type(error).__name__, error)
            found = CheckResult(check, suite, ERROR, text, check.cause, seconds=seconds)
            return found.with_remedy(only_look("validate --explain {}".format(check.id)))
        return CheckResult(check, suite, PASSED, measured, "", "", "", seconds)

    def _is_reported(self, error: CheckFailed) -> bool:
        """Return whether an earlier check failed for want of a place for temporary files."""
        failed = [one.check.id for one in self.results if one.outcome == FAILED]
        return error.cause == TEMPORARY.cause and TEMPORARY.check in failed

    def _with_cause(self, error: BaseException) -> BaseException:
        """Return why a check failed: if a command of it broke, that is the reason."""
        if len(BROKEN) == self._broken_before:
            return error
        last, seen = BROKEN[-1], getattr(error, "measured", "")
        known = endings.short_name(last.killed_by) if last.killed_by else last.tail(1).strip()
        if known not in seen:
            seen = "; ".join(filter(None, (seen, last.says())))
        kind = CheckWarned if isinstance(error, CheckWarned) else CheckFailed
        return kind(seen, *crashes.explain(self.situation, last))


def _with_restriction(error: BaseException) -> BaseException:
    """Return what the container lacks in place of an error that shows it.

    A check that was not started says so in a skip or in a failure without a cause of its own.
    """
    if isinstance(error, CheckFailed):
        lacks = None if error.cause else restriction_in(error.measured)
        text = error.measured
    else:
        lacks, text = restriction(error), "{}: {}".format(type(error).__name__, error)
        if isinstance(error, pytest.skip.Exception):
            text = str(error).partition(": ")[2]
    if lacks is None:
        return error
    kind = CheckWarned if isinstance(error, CheckWarned) else CheckFailed
    return kind(text[:MOST_LETTERS], lacks.cause, lacks.remedy)


def _time_is_up(suite: str) -> Callable[..., None]:
    def stop(*_: object) -> None:
        raise CheckFailed(
            "no answer within {:.0f} s".format(CEILING_SECONDS * patience()),
            "something that the check waits for hangs",
            only_look("validate --only {}".format(suite)),
        )

    return stop


def _suite_of(item: Any) -> str:
    """Return the suite of a collected test, from the name of its file."""
    return catalogue.suite_of(str(item.path.stem))


def _check_of(item: Any) -> Optional[Check]:
    """Return the check of a collected test; None if it is not a check."""
    found = getattr(getattr(item, "function", None), "check", None)
    return found if isinstance(found, Check) else None
