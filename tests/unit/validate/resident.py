"""Collect validate's suites once for all tests of this process, and run them any number of times.

To start pytest for each made-up machine costs a third of a second, nearly all of it for set-up. The
hooks, the fixtures and the order of the checks are those of pytest here too.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.config import _prepareconfig

from validate import pytest_run, suites

if TYPE_CHECKING:
    from collections.abc import Sequence

SHIPPED = Path(suites.__file__).parent
QUIET = ("capture", "debugging", "faulthandler", "threadexception", "unraisableexception")
"""Plug-ins that change the whole process while their pytest lives."""


SPARED = ("-p", "no:threadexception", "-p", "no:unraisableexception")
"""Plug-ins that search all memory of the test process at the end."""


class Resident:
    """Hold one pytest that stays, with the tests that it collected before any were selected."""

    def __init__(self, arguments: Sequence[str], collector: Any) -> None:
        self.items: list[pytest.Item] = []
        self._collector = collector
        config = _prepareconfig([*_lighter(), *arguments], [self, collector])
        config.option.tbstyle = "native"  # the fastest: nothing reads the traceback
        config._do_configure()
        self._session = pytest.Session.from_config(config)
        config.hook.pytest_sessionstart(session=self._session)
        self._session.perform_collect()

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        self.items = list(items)

    def run(self, collector: Any) -> None:
        """Run the checks that this collector wants, with its fixtures."""
        self._collector.__dict__ = collector.__dict__
        chosen = list(self.items)
        collector.pytest_collection_modifyitems(chosen)
        for item, following in zip(chosen, [*chosen[1:], None], strict=False):
            item.__dict__.pop("measured", None)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)


def _lighter() -> list[str]:
    return [word for name in QUIET for word in ("-p", f"no:{name}")]


class ResidentPytest:
    """Stand in for the module `pytest` in validate.pytest_run.

    Suites that are not shipped get a pytest of their own, because their tests test the frame
    itself.
    """

    def __init__(self) -> None:
        self._ready: dict[tuple[str, ...], Resident] = {}

    def main(self, arguments: list[str], plugins: Sequence[Any]) -> int:
        (collector,) = plugins
        if str(SHIPPED) not in arguments or any(word.endswith(".py") for word in arguments):
            return pytest.main([*SPARED, *arguments], plugins=plugins)
        key = (*arguments, *collector.files)
        ready = self._ready.get(key)
        if ready is None:
            ready = self._ready[key] = Resident(arguments, collector)
        ready.run(collector)
        return pytest.ExitCode.OK


RESIDENT = ResidentPytest()


def use(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make validate run its suites in the pytest that stays."""
    monkeypatch.setattr(pytest_run, "_pytest", lambda: RESIDENT)
