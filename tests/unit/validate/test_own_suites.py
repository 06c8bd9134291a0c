"""Test a user's own suites beside those that travel with validate."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any

import pytest

from unit.conftest import REPOSITORY
from unit.validate import trees
from validate import cli
from validate.check import FAILED, PASSED, SKIPPED, WARNED
from validate.probes import limits

if TYPE_CHECKING:
    from pathlib import Path


OWN = '''
import pytest
from validate.check import check, warn

def test_plain(host):
    """this machine is looked at"""
    assert host.backend.NAME == "local"

def test_wrong():
    assert 1 + 1 == 3, "sums are wrong"

def test_rests():
    pytest.skip("not on Sundays")

def test_soon():
    pytest.xfail("comes next year")

@pytest.mark.parametrize("size", [1, 2])
def test_each(size, measure):
    measure(size)

@check("site.proxy", "a proxy is set", cause="c", remedy="r")
def test_proxy(image, expected, given):
    warn("no proxy in {} for {}".format(given, expected.path))
'''


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the imported suites, because each test has a module of the same name."""
    monkeypatch.delitem(sys.modules, "test_site", raising=False)


@pytest.fixture
def roomy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "soft_limit", lambda kind: 1 << 26 if kind == "stack" else -1)
    monkeypatch.setattr(limits, "shm_bytes", lambda _: 1 << 30)


def _reports(folder: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    components = {"validate": {"version": "0.1.0"}}
    trees.expected(folder, components=components)
    given = ["--expect", str(folder / "image.json"), "--json", str(folder / "r.json")]
    given += ["--junit", str(folder / "r.xml"), "--markdown", str(folder / "r.md")]
    code = cli.main([*given, *arguments])
    document: dict[str, Any] = json.loads((folder / "r.json").read_text())
    return code, document


@pytest.mark.usefixtures("roomy")
def test_suites_of_one_s_own_join_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "mine"
    trees.write(folder, "test_site.py", OWN)
    conftest = 'import pytest\n@pytest.fixture\ndef given(): return "here"\n'
    trees.write(folder, "conftest.py", conftest)
    code, document = _reports(tmp_path, "--only", "limits,site", "--suite", str(folder))
    mine = {one["id"]: one for one in document["checks"] if one["suite"] == "site"}
    assert code == 1
    assert {name: one["outcome"] for name, one in mine.items()} == {
        "site.plain": PASSED,
        "site.wrong": FAILED,
        "site.rests": SKIPPED,
        "site.soon": WARNED,
        "site.each[1]": PASSED,
        "site.each[2]": PASSED,
        "site.proxy": WARNED,
    }
    assert mine["site.plain"]["proves"] == "this machine is looked at"
    assert mine["site.wrong"]["measured"].startswith("sums are wrong\nassert (1 + 1) == 3")
    assert (mine["site.rests"]["reason"], mine["site.rests"]["measured"]) == (
        "not-applicable",
        "not on Sundays",
    )
    assert mine["site.proxy"]["measured"].startswith("no proxy in here for ")
    assert len(document["checks"]) == 7 + 13
    assert cli.main(["--suite", str(tmp_path), "--expect", str(tmp_path / "image.json")]) == 2
    assert "error: there is no test_*.py in" in capsys.readouterr().err


def test_the_example_in_the_manual_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HTTPS_PROXY", raising=False)
    manual = (REPOSITORY / "validate/README.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", manual, re.DOTALL)
    trees.write(tmp_path, "own/test_site.py", example)
    code, document = _reports(tmp_path, "--only", "site", "--suite", str(tmp_path / "own"))
    found = {one["id"]: (one["outcome"], one["measured"]) for one in document["checks"]}
    assert (code, found["site.proxy"]) == (1, (WARNED, "HTTPS_PROXY is not set"))
    outcome, measured = found["site.scratch_is_mounted"]
    assert outcome == FAILED
    assert "exists" in measured
    assert document["checks"][0]["proves"] == "the scratch file system is there"


def test_a_suite_s_name_that_is_taken_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trees.write(tmp_path, "own/test_rdma.py", "def test_a(): pass\n")
    trees.expected(tmp_path)
    arguments = ["--suite", str(tmp_path / "own"), "--expect", str(tmp_path / "image.json")]
    assert cli.main(arguments) == 2
    assert "there is a suite `rdma` already" in capsys.readouterr().err
