"""Test the gate before a job: which checks belong to it, what it leads to, its one screen."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from unit.validate import trees
from validate import cli, preflight
from validate.catalogue import all_checks, suite_names
from validate.check import ERROR, FAILED, PASSED, SKIPPED, WARNED, Check, CheckResult
from validate.probes import limits
from validate.remedy import (
    ACTIONS,
    ASK,
    DRAIN,
    KINDS,
    REBUILD,
    RELAUNCH,
    Remedy,
    at_launch,
    in_image,
    in_shell,
    on_host,
    only_look,
)
from validate.report.json_document import as_data, from_data
from validate.report.junit import as_junit
from validate.report.report import PREFLIGHT, Report, exit_code
from validate.report.screen import as_screen, decision_of
from validate.report.table import SCREEN

if TYPE_CHECKING:
    from pathlib import Path

ONE = Check("lim.shm", "there is memory", "fail", "live", "c", Remedy())
ANY_REMEDY = (on_host("swap it"), in_image("b"), at_launch("l"), only_look("?"))
RECIPE = {"validate": {"version": "0.1.0"}}


@pytest.fixture
def roomy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "soft_limit", lambda kind: 1 << 26 if kind == "stack" else -1)
    monkeypatch.setattr(limits, "shm_bytes", lambda _: 8 << 30)


def finding(name: str, remedy: Remedy, outcome: str = FAILED, seen: str = "64 MiB") -> CheckResult:
    return CheckResult(ONE._replace(id=name), "limits", outcome, seen, "why").with_remedy(remedy)


def report(*results: CheckResult, missing: tuple[str, ...] = ()) -> Report:
    code = exit_code(results, missing, ())
    return Report("i", "0", PREFLIGHT, list(results), list(missing), 1.0, code)


def test_each_kind_of_remedy_leads_to_an_action() -> None:
    assert set(ACTIONS) == set(KINDS)
    actions = [Remedy("x", kind).action for kind in KINDS]
    assert actions == [REBUILD, RELAUNCH, REBUILD, DRAIN, ASK]
    assert on_host("new cable").leads_to(ASK).action == ASK
    assert on_host("new cable", "ibstat").leads_to(ASK).look == "ibstat"
    with pytest.raises(ValueError, match="unknown action"):
        in_shell("x").leads_to("pray")


def test_an_action_is_in_every_report() -> None:
    one = report(finding("gpu.ecc", on_host("replace it")))
    data = as_data(one)
    assert data["checks"][0]["action"] == DRAIN
    assert from_data(data).results[0].action == DRAIN
    assert '<property name="action" value="drain" />' in as_junit(one)
    assert data["verdict"] == {"action": "drain", "reason": "gpu.ecc: 64 MiB"}


@pytest.mark.parametrize("strongest", range(len(ANY_REMEDY)))
def test_the_strongest_action_counts(strongest: int) -> None:
    weaker = ANY_REMEDY[strongest:]
    results = [finding(f"a.{n}", remedy) for n, remedy in enumerate(reversed(weaker))]
    found = decision_of(report(*results))
    assert found.action == preflight.ORDER[strongest]
    assert found.reason == f"a.{len(weaker) - 1}: 64 MiB"


def test_what_is_required_and_absent_asks_for_a_relaunch() -> None:
    passed = CheckResult(ONE, "limits", PASSED, "ok")
    one = report(passed, missing=("gpu",))
    assert one.exit_code == 3
    assert decision_of(one).action == RELAUNCH
    assert "required, but it did not run: gpu" in decision_of(one).reason


def test_a_warning_starts_the_job_and_is_named() -> None:
    one = report(finding("gpu.pcie", on_host("x"), WARNED), CheckResult(ONE, "limits", PASSED, ""))
    assert one.exit_code == 0
    assert str(decision_of(one)) == "start: 2 checks, nothing failed; warned: gpu.pcie"


def test_a_check_that_broke_itself_is_asked_about() -> None:
    assert decision_of(report(finding("a.b", only_look("x"), ERROR))).action == ASK


@pytest.mark.parametrize("number", [0, 1, 5, 60])
def test_whatever_is_found_fits_one_screen(number: int) -> None:
    results = [finding(f"a.{n}", on_host("swap", look="see"), seen="x\ny") for n in range(number)]
    results += [CheckResult(ONE, "limits", SKIPPED, "none", reason="no-gpu-hw")]
    results += [CheckResult(ONE, "limits", PASSED, "ok")]
    one = report(*results)
    lines = as_screen(one, colour=False).splitlines()
    assert len(lines) <= SCREEN
    assert lines[-1] == str(decision_of(one))
    assert len(lines[-1]) < preflight.MOST_LETTERS + 20
    named = "\n".join(lines)
    assert all(f"a.{n}" in named for n in range(number))


def test_the_reason_is_one_line() -> None:
    found = decision_of(report(finding("a.b", on_host("x"), seen="first\nsecond " + "x" * 500)))
    assert found.reason.startswith("a.b: first second xxx")
    assert "\n" not in found.reason
    assert len(found.reason) <= preflight.MOST_LETTERS


def test_what_is_chosen_is_there_and_the_long_checks_are_left_out() -> None:
    ids = {one.id for _, one in all_checks()}
    assert ids >= {*preflight.MORE, *preflight.LEFT_OUT}
    assert set(suite_names()) >= set(preflight.SUITES)
    chosen = {one.id for suite, one in all_checks() if preflight.belongs(suite, one)}
    assert {one.id for _, one in all_checks() if one.tier == "static"} <= chosen
    assert not chosen & {one.id for _, one in all_checks() if one.tier == "asked"}
    assert chosen >= {"gpu.nodes", "lim.memlock", "lim.shm", "peers.login", "torch.kernel"}
    assert not chosen & {"mpi.2rank", "hvd.size", "ddp.init", "ddp.torchrun", *preflight.LEFT_OUT}


@pytest.mark.usefixtures("roomy")
def test_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    trees.expected(tmp_path, components=RECIPE, suites=["limits"], device="gpu")
    file = tmp_path / "preflight.json"
    words = ["--expect", f"{tmp_path}/image.json", "--only", "limits", "--preflight"]
    assert cli.main([*words, "--json", str(file)]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("start: ")
    monkeypatch.setattr(limits, "shm_bytes", lambda _: 64 << 20)
    assert cli.main([*words, "--json", str(file)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("FAIL  lim.shm  /dev/shm has 64 MiB")
    assert lines[-1].startswith("relaunch: lim.shm: /dev/shm has 64 MiB")
    data = json.loads(file.read_text())
    assert (data["tier"], data["verdict"]["action"], data["exit_code"]) == (PREFLIGHT, RELAUNCH, 1)
    assert cli.main([*words, "--static"]) == 2
