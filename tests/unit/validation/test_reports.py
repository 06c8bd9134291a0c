"""Test reports of several images in one file each, and checks that the host adds to a report."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast
from xml.etree import ElementTree

import jsonschema
import pytest

from imagegen.errors import ConfigError
from imagegen.model.validation import Check as CheckData
from imagegen.model.validation import Report as ReportData
from imagegen.model.validation import ValidationRecord
from imagegen.validation.image_secrets import FileSecret, ImageSecrets
from imagegen.validation.in_container import with_secrets
from imagegen.validation.reports import (
    Files,
    of_record,
    read_report,
    save,
    with_check,
)
from unit.conftest import REPOSITORY
from validate.check import FAILED, PASSED, SKIPPED, WARNED, Check, CheckResult
from validate.remedy import Remedy
from validate.report.json_document import as_data
from validate.report.report import Report

if TYPE_CHECKING:
    from pathlib import Path


SCHEMA = json.loads((REPOSITORY / "validate/report.schema.json").read_text())
SEEN = {"os": PASSED, "ssh": WARNED, "rdma": SKIPPED}


def record(tag: str, *, earlier: str = "", **outcomes: str) -> ValidationRecord:
    """Return what `validate` reports in an image; `earlier` is the time when it passed."""
    found = [
        CheckResult(
            Check(f"{suite}.one", "it is well", "fail", "live", "", Remedy()),
            suite,
            outcome,
            "seen",
            cause="why" if outcome in (FAILED, WARNED) else "",
            remedy="do it" if outcome in (FAILED, WARNED) else "",
            reason="no-rdma-hw" if outcome == SKIPPED else "",
            seconds=0.5,
            earlier=earlier if outcome == PASSED else "",
        )
        for suite, outcome in outcomes.items()
    ]
    code = int(FAILED in outcomes.values())
    data = as_data(Report("cpu:x", "0.1.0", "full", found, [], 1.5, code))
    report = cast("ReportData", data)
    return ValidationRecord("sha256:" + tag, tag, "full", not code, data["counts"], 2.0, report)


def written(folder: Path, *reports: ReportData) -> tuple[dict[str, Any], Any, str]:
    """Return the contents of the three files."""
    files = Files(folder / "r.json", folder / "r.xml", folder / "r.md")
    save(files, reports)
    document: dict[str, Any] = json.loads((folder / "r.json").read_text())
    return document, ElementTree.parse(folder / "r.xml").getroot(), (folder / "r.md").read_text()


def test_the_type_of_a_report_and_its_schema_have_the_same_keys() -> None:
    assert set(ReportData.__annotations__) == set(SCHEMA["properties"])
    of_a_check = SCHEMA["properties"]["checks"]["items"]
    assert set(CheckData.__annotations__) == set(of_a_check["properties"])


def test_what_is_no_json_object_is_no_report() -> None:
    for text in ("[]", "null", "{", ""):
        with pytest.raises(ValueError, match=r"JSON|Expecting"):
            read_report(text)


def test_each_image_has_a_suite_and_a_page_and_a_report(tmp_path: Path) -> None:
    good, bad = record("cpu:a", **SEEN), record("cpu:b", os=FAILED)
    document, root, page = written(tmp_path, of_record(good), of_record(bad))
    assert (document["exit_code"], [one["id"] for one in document["images"]]) == (
        1,
        ["sha256:cpu:a", "sha256:cpu:b"],
    )
    for one in document["images"]:
        jsonschema.validate(one, SCHEMA)
    assert [(suite.get("name"), suite.get("failures"), suite.get("skipped")) for suite in root] == [
        ("validate cpu:a", "0", "1"),
        ("validate cpu:b", "1", "0"),
    ]
    assert "# validate cpu:a" in page
    assert "# validate cpu:b" in page
    assert "```sh\ndo it\n```" in page


def test_a_warning_and_what_passed_before_are_marked(tmp_path: Path) -> None:
    at = "2026-01-01T00:00:00+00:00"
    document, root, page = written(tmp_path, of_record(record("cpu:a", earlier=at, **SEEN)))
    jsonschema.validate(document["images"][0], SCHEMA)
    suite = root[0]
    known = {one.get("name"): one.get("value") for one in suite.find("properties")}
    assert known == {"warned": "1", "earlier": "1"}
    cases = {one.get("name"): one for one in suite.findall("testcase")}
    assert cases["os.one"].findtext("system-out") == f"passed at {at}, not run again"
    assert str(cases["ssh.one"].findtext("system-out")).startswith("warning: seen")
    assert cases["rdma.one"].find("skipped").get("message") == "no-rdma-hw: seen"
    assert f"| os.one | ok at {at} | seen |" in page


def test_a_check_of_the_host_agrees_with_the_schema() -> None:
    before = of_record(record("cpu:a", **SEEN))
    key = FileSecret("private key", 3, "/root/.ssh/id_rsa")
    well, ill = (with_secrets(before, ImageSecrets(files)) for files in ((), (key,)))
    for one in (well, ill):
        jsonschema.validate(one, SCHEMA)
    assert (well["exit_code"], well["counts"]["passed"]) == (0, 4)
    assert (ill["exit_code"], ill["counts"]["failed"]) == (1, 1)
    found = next(one for one in ill["checks"] if one["id"] == "image.private-key-in-layer")
    assert found["measured"] == "layer 3: /root/.ssh/id_rsa"
    assert found["remedy"].startswith("imagegen build")
    assert found["look"] == "docker history --no-trunc IMAGE"
    rests = with_check(before, "rdma.pingpong", SKIPPED, "rdma.port", reason="blocked-by")
    assert rests["skips"] == {"no-rdma-hw": 1, "blocked-by": 1}


def test_a_file_that_cannot_be_written_is_said_before_and_after(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no folder"):
        Files(junit=tmp_path / "no" / "r.xml").must_have_folders()
    with pytest.raises(ConfigError, match="cannot write"):
        save(Files(junit=tmp_path / "no" / "r.xml"), [of_record(record("cpu:a", os=PASSED))])
    Files(junit=tmp_path / "r.xml").must_have_folders()
