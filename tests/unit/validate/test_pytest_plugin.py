"""Test the frame: whatever a check does becomes an outcome."""

from __future__ import annotations

import sys
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from unit.validate import trees
from validate import catalogue, pytest_plugin, pytest_run
from validate.check import Check, CheckResult
from validate.fixtures import Situation
from validate.remedy import Remedy
from validate.requirements import not_run

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "import time\nfrom validate.check import check, fail, skip, warn\n"


@pytest.fixture
def suites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder for suites of our own.

    A suite there has the name `limits`, because that one always runs.
    """
    folder = tmp_path / "suites"
    folder.mkdir()
    monkeypatch.setattr(catalogue, "SUITES", str(folder))
    return folder


def _run(suites: Path, text: str, *, static: bool = False) -> tuple[list[CheckResult], list[str]]:
    (suites / "test_limits.py").write_text(HEAD + dedent(text))
    sys.modules.pop("test_limits", None)  # an earlier run's, of the same name
    recipe = trees.expected(suites.parent)
    return pytest_run.run_suites(["limits"], recipe, "/", pytest_plugin.RunOptions(static=static))


def test_outcomes_follow_severity_and_words(suites: Path) -> None:
    found, broken = _run(
        suites,
        """
        @check("a.pass", "p")
        def test_a(measure): measure("seen")
        @check("a.fail", "p", cause="c", remedy="r")
        def test_b(measure): fail("two, not one")
        @check("a.exact", "p", cause="c", remedy="r")
        def test_c(): fail("x", "cause here", "remedy here")
        @check("a.mild", "p", severity="warn")
        def test_d(): fail("so so")
        @check("a.warn", "p")
        def test_e(): warn("nearly")
        @check("a.skip", "p")
        def test_f(): skip("needs-peer", "alone: here")
        @check("a.broken", "p")
        def test_g(): {}["x"]
        """,
    )
    assert broken == []
    assert [(one.check.id, one.outcome, one.measured) for one in found] == [
        ("a.pass", "passed", "seen"),
        ("a.fail", "failed", "two, not one"),
        ("a.exact", "failed", "x"),
        ("a.mild", "warned", "so so"),
        ("a.warn", "warned", "nearly"),
        ("a.skip", "skipped", "alone: here"),
        ("a.broken", "error", "the check itself broke: KeyError: 'x'"),
    ]
    assert [(one.cause, one.remedy) for one in found[1:3]] == [
        ("c", "r"),
        ("cause here", "remedy here"),
    ]
    assert found[5].reason == "needs-peer"


def test_a_check_rests_when_what_it_needs_did_not_pass(suites: Path) -> None:
    found, _ = _run(
        suites,
        """
        @check("a.base", "p")
        def test_a(): fail("gone")
        @check("a.next", "p", needs=("a.base",))
        def test_b(): raise AssertionError("ran")
        @check("a.last", "p", needs=("a.next",))
        def test_c(): raise AssertionError("ran")
        @check("b.base", "p")
        def test_d(): skip("no-rdma-hw", "none")
        @check("b.next", "p", needs=("b.base",))
        def test_e(): raise AssertionError("ran")
        @check("c.free", "p", needs=("not.selected",))
        def test_f(): pass
        """,
    )
    assert [(one.outcome, one.reason, one.measured) for one in found[1:]] == [
        ("skipped", "blocked-by", "a.base"),
        ("skipped", "blocked-by", "a.base"),
        ("skipped", "no-rdma-hw", "none"),
        ("skipped", "no-rdma-hw", "none"),
        ("passed", "", ""),
    ]


def test_a_warning_blocks_nothing(suites: Path) -> None:
    found, _ = _run(
        suites,
        """
        @check("a.base", "p", severity="warn")
        def test_a(): fail("so so")
        @check("a.next", "p", needs=("a.base",))
        def test_b(): pass
        """,
    )
    assert [one.outcome for one in found] == ["warned", "passed"]


def test_a_static_run_leaves_live_checks_and_helpers_out(suites: Path) -> None:
    text = """
        @check("a.live", "p", tier="live")
        def test_a(): pass
        @check("a.static", "p")
        def test_b(): pass
        def test_helper(): raise AssertionError("ran")
        """
    assert [one.check.id for one in _run(suites, text, static=True)[0]] == ["a.static"]
    assert [one.check.id for one in _run(suites, text)[0]] == ["a.live", "a.static"]


def test_a_suite_that_does_not_load_is_reported(suites: Path) -> None:
    found, broken = _run(suites, "import no_such_module_anywhere\n")
    assert found == []
    assert len(broken) == 1
    assert "no_such_module_anywhere" in broken[0]


def test_a_check_that_hangs_fails_at_the_ceiling(
    suites: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pytest_plugin, "CEILING_SECONDS", 1)
    monkeypatch.setattr(pytest_plugin, "patience", lambda: 1.0)
    found, _ = _run(
        suites,
        """
        @check("a.hangs", "p")
        def test_a(): time.sleep(60)
        @check("a.next", "p")
        def test_b(): pass
        """,
    )
    assert [(one.outcome, one.measured) for one in found] == [
        ("failed", "no answer within 1 s"),
        ("passed", ""),
    ]


def test_the_caller_s_pytest_settings_do_not_reach_the_run(
    suites: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "--no-such-option")
    (suites / "conftest.py").write_text("raise RuntimeError('a conftest ran')\n")
    found, broken = _run(suites, '@check("a.a", "p")\ndef test_a(): pass\n')
    assert [one.outcome for one in found] == ["passed"]
    assert broken == []
    assert not list(suites.rglob("*.pyc"))


def test_a_slow_look_is_taken_once() -> None:
    looks = []
    situation = Situation(None, {}, "/", {})  # type: ignore[arg-type]
    for _ in range(2):
        assert situation.once("key", lambda: looks.append(1) or "seen") == "seen"  # type: ignore[func-returns-value]
    assert looks == [1]


@pytest.mark.parametrize(
    ("required", "outcome", "reason", "missing"),
    [
        (["rdma"], "passed", "", []),
        (["rdma"], "skipped", "no-rdma-hw", ["rdma"]),
        (["gpu"], "passed", "", ["gpu"]),
        (["mpi"], "passed", "", ["mpi"]),
    ],
)
def test_what_is_required_must_have_run(
    required: list[str], outcome: str, reason: str, missing: list[str]
) -> None:
    check = Check("rdma.hw", "p", "fail", "live", "", Remedy())
    found = [CheckResult(check, "rdma", outcome, "", reason=reason)]
    assert not_run(required, found) == missing


def test_an_interrupt_is_no_result(suites: Path) -> None:
    text = """
        @check("a.stop", "p")
        def test_a(): raise KeyboardInterrupt
        """
    with pytest.raises(KeyboardInterrupt):
        _run(suites, text)
