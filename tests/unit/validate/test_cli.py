"""Test the command line: exit codes, reports, and error messages."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest

from unit.conftest import REPOSITORY
from unit.validate import trees
from validate import cli
from validate.probes import limits
from validate.report.files import save

if TYPE_CHECKING:
    from pathlib import Path

FIELDS = ["id", "suite", "tier", "severity", "proves", "outcome", "measured", "cause", "remedy"]
FIELDS += ["remedy_kind", "look", "action", "reason", "seconds"]
NO_SUITE = """\
error: there is no suite `limit`; did you mean `limits`? \
there are: validate, os, python, gcc, gpu, cuda, cudnn, nccl, """
RECIPE_ONLY = {"validate": {"version": "0.1.0"}}
RDMA: dict[str, Any] = {"components": {**RECIPE_ONLY, "rdma": trees.RECIPE["components"]["rdma"]}}


@pytest.fixture(autouse=True)
def roomy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the container limits that cause no finding."""
    monkeypatch.setattr(limits, "soft_limit", lambda kind: 1 << 26 if kind == "stack" else -1)
    monkeypatch.setattr(limits, "shm_bytes", lambda _: 8 << 30)


def _validate(folder: Path, *arguments: str, **changes: Any) -> int:
    trees.expected(folder, **{"components": RECIPE_ONLY, **changes})
    return cli.main(["--expect", str(folder / "image.json"), *arguments])


def test_all_passed_is_0_with_one_summary_line_last(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _validate(tmp_path, "--only", "limits") == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("13 passed, 0 failed, 0 warned, 0 skipped in ")


def test_a_long_table_ends_with_what_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "shm_bytes", lambda _: 64 << 20)
    arguments = ["--only", "limits,nccl,rdma,os", "--root", str(tmp_path)]
    _validate(tmp_path, *arguments, device="gpu")
    _, _, end = capsys.readouterr().out.partition("What failed, in the order in which to fix it:")
    lines = [line.split() for line in end.splitlines() if line.strip()]
    assert {line[1] for line in lines if "." in line[0]} <= {"FAIL", "ERROR"}
    assert [line[0] for line in lines[-5:-1]] == ["lim.shm", "cause:", "action:", "remedy"]


def test_a_suite_that_does_not_load_is_1_in_every_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trees.write(tmp_path, "own/test_broken.py", "import no_such_module_anywhere\n")
    files = [f"--{kind}={tmp_path}/r.{kind}" for kind in ("json", "junit", "markdown")]
    assert _validate(tmp_path, "--only", "limits,broken", f"--suite={tmp_path}/own", *files) == 1
    said = capsys.readouterr()
    assert "error: a suite does not load: " in said.err
    (text,) = json.loads((tmp_path / "r.json").read_text())["unloaded"]
    assert "no_such_module_anywhere" in text
    suite = ElementTree.parse(tmp_path / "r.junit").getroot()[0]
    assert suite.get("failures") == "1"
    assert "- a suite does not load: " in (tmp_path / "r.markdown").read_text()


def test_a_failure_is_1_with_cause_and_remedy_below_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "shm_bytes", lambda _: 64 << 20)
    assert _validate(tmp_path, "--only", "limits", device="gpu") == 1
    lines = capsys.readouterr().out.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("lim.shm"))
    assert lines[at].split("FAIL")[1].strip() == "/dev/shm has 64 MiB, at least 256 MiB are needed"
    assert lines[at + 1].strip().startswith("cause:  the container was started with")
    assert lines[at + 2].strip() == "action: relaunch"
    assert lines[at + 3].strip().startswith("remedy at launch: docker run --shm-size=32g")


def test_warnings_alone_are_0(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "shm_bytes", lambda _: 1 << 30)
    assert _validate(tmp_path, "--only", "limits") == 0


def test_nothing_executed_is_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _validate(tmp_path, "--only", "horovod") == 3
    assert "(not-in-recipe 10)" in capsys.readouterr().out


def test_a_run_of_no_check_at_all_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _validate(tmp_path, "--static", "--only", "limits") == 3
    assert "no check ran: that is no pass" in capsys.readouterr().out


def test_a_run_of_no_check_is_no_green_suite(tmp_path: Path) -> None:
    target = tmp_path / "report.xml"
    assert _validate(tmp_path, "--only", "horovod", "--junit", str(target)) == 3
    suite = ElementTree.parse(target).getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == ("11", "1")


def test_a_required_thing_that_rests_is_3(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _validate(tmp_path, "--only", "limits", "--require", "gpu=8,rdma") == 3
    out = capsys.readouterr().out
    assert "required, but it did not run: gpu\nrequired, but it did not run: rdma\n" in out


def test_a_required_device_that_is_absent_is_3_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "report.xml"
    arguments = ["--only", "limits,rdma", "--require", "rdma", "--junit", str(target)]
    trees.verbs_stack(tmp_path)
    assert _validate(tmp_path, *arguments, "--root", str(tmp_path), **RDMA) == 3
    line = "required, but it did not run: rdma (no-rdma-hw: the host has no RDMA device)"
    assert line + "\n" in capsys.readouterr().out
    suite = ElementTree.parse(target).getroot()[0]
    assert (suite.get("failures"), suite.get("errors")) == ("1", "0")
    (case,) = [one for one in suite.findall("testcase") if one.find("failure") is not None]
    assert case.get("name") == line


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            ["--only", "limit"],
            NO_SUITE,
        ),
        (["--only", ","], "error: `--only` names no suite\n"),
        (["--require", "gpu=no"], "error: `gpu=no` does not say how many GPUs\n"),
        (["--require", "rdma=2"], "error: `rdma=2`: a number can be required of `gpu` alone\n"),
        (["--require", "hovorod"], "error: there is no suite `hovorod`; did you mean `horovod`?"),
        (["--explain", "x.y"], "error: there is no check `x.y`\n"),
        (["--bogus"], "error: unrecognized arguments: --bogus\n\nhint: see `validate --help`\n"),
        (
            ["--benchmark", "--ranks", "0"],
            "error: argument --ranks: `0` is not a number from 1 on\n",
        ),
    ],
)
def test_bad_usage_is_2_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], text: str
) -> None:
    assert _validate(tmp_path, *arguments) == 2
    err = capsys.readouterr().err
    assert err.startswith(text)
    assert "hint: " in err


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "cannot read `{}`: No such file or directory"),
        ("{", "`{}` is not JSON: "),
        ("[]", "{}: not a JSON object"),
        ('{"schema": 9}', "{}: schema 9; this validate reads schema 1"),
        ('{"schema": 1}', "{}: components, os, suites missing or of the wrong kind"),
        (
            '{"schema": 1, "os": {}, "suites": [], "components": {"torch": {}}}',
            "{}: component `torch` has no version",
        ),
        (
            '{"schema": 1, "os": {}, "suites": [], "components": {}, "env": []}',
            "{}: env missing or of the wrong kind",
        ),
    ],
)
def test_no_usable_expectations_is_2_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, problem: str
) -> None:
    path = tmp_path / "image.json"
    if text is not None:
        path.write_text(text)
    assert cli.main(["--expect", str(path)]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: " + problem.format(path))
    assert "hint: `validate --infer > image.json`" in err


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        (
            {"suites": ["limits", "opnmpi"]},
            "`suites` names `opnmpi`, and this validate has no such suite; did you mean `openmpi`?",
        ),
        ({"suites": ["quite-another"]}, "`suites` names `quite-another`, and this validate has"),
        ({"suites": ["limits", None]}, "`suites` names `None`, and this validate has"),
        (
            {"cell": "one", "suites": ["limits", "os"]},
            "`suites` leaves out `validate`, which applies to this image",
        ),
        (
            {"cell": "one", "suites": ["limits", "validate"]},
            "`suites` leaves out `os`, which applies to this image",
        ),
    ],
)
@pytest.mark.parametrize("arguments", [[], ["--static"], ["--only", "limits"]])
def test_no_suite_of_an_image_vanishes(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    changes: dict[str, Any],
    problem: str,
) -> None:
    assert _validate(tmp_path, *arguments, **changes) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"error: {tmp_path}/image.json: {problem}")
    assert "hint: `imagegen build` builds the image again" in said.err


def test_the_json_report_holds_what_the_table_says(tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    assert _validate(tmp_path, "--only", "limits,horovod", "--json", str(target)) == 0
    report = json.loads(target.read_text())
    assert report["schema"] == 1
    assert (report["tier"], report["exit_code"], report["missing"]) == ("full", 0, [])
    assert report["counts"] == {"passed": 13, "failed": 0, "warned": 0, "skipped": 10, "error": 0}
    assert report["skips"] == {"not-in-recipe": 10}
    first = report["checks"][0]
    assert (first["id"], first["suite"], first["reason"]) == (
        "hvd.dist",
        "horovod",
        "not-in-recipe",
    )
    assert sorted(first) == sorted(FIELDS)


def test_json_on_stdout_is_nothing_but_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _validate(tmp_path, "--only", "limits", "--json", "-") == 0
    assert json.loads(capsys.readouterr().out)["counts"]["passed"] == 13


def test_junit_has_a_case_for_each_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "shm_bytes", lambda _: 1)
    target = tmp_path / "report.xml"
    arguments = ["--only", "limits,horovod", "--junit", str(target)]
    assert _validate(tmp_path, *arguments, device="gpu") == 1
    suite = ElementTree.parse(target).getroot()[0]
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "23",
        "failures": "1",
        "errors": "0",
        "skipped": "10",
    }
    failed = next(case for case in suite if case.find("failure") is not None)
    assert failed.get("name") == "lim.shm"


def test_a_report_for_a_device_does_not_replace_the_device(tmp_path: Path) -> None:
    assert _validate(tmp_path, "--only", "limits", "--json", "/dev/null") == 0
    with open("/dev/null") as null:  # noqa: PTH123
        assert null.read() == ""


def test_a_report_that_cannot_be_written_is_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "no" / "such" / "report.json"
    assert _validate(tmp_path, "--only", "limits", "--json", str(target)) == 2
    said = capsys.readouterr()
    assert f"error: cannot write `{target}`: No such file" in said.err
    assert " passed, " in said.out  # the table is not lost with the file


def test_a_report_for_a_full_disk_names_the_file_and_leaves_no_part(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _validate(tmp_path, "--only", "limits", "--json", "/dev/full") == 2
    assert "error: cannot write `/dev/full`: No space left on device" in capsys.readouterr().err
    target = tmp_path / "folder.json"
    target.mkdir()
    with pytest.raises(IsADirectoryError) as refused:
        save(str(target), "text")
    assert refused.value.filename == str(target)
    assert not [*tmp_path.glob("*.part")]


def test_colour_only_on_a_terminal_that_wants_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    _validate(tmp_path, "--only", "limits")
    assert "\033[32m" in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    _validate(tmp_path, "--only", "limits")
    assert "\033[" not in capsys.readouterr().out


def test_bad_usage_the_list_and_reports_need_no_pytest() -> None:
    """`imagegen` writes reports where pytest is not installed."""
    script = "import sys; sys.modules['pytest'] = sys.modules['testinfra'] = None\n"
    script += "import validate.report.files, validate.cli; sys.exit(validate.cli.main(['--list']))"
    command = [sys.executable, "-c", script]
    ended = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_the_list_needs_no_expectations(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:2]] == ["env.manifest", "env.contract"]
    assert lines[-1].split()[:2] == ["net.links", "network"]
