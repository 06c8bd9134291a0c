"""Test that reports agree with their schema and with one another."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import jsonschema
import pytest

from unit.conftest import REPOSITORY
from unit.validate import trees
from validate import cli
from validate.probes import limits
from validate.report.json_document import as_data, from_data

if TYPE_CHECKING:
    from pathlib import Path


SCHEMA = json.loads((REPOSITORY / "validate/report.schema.json").read_text())


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
def test_reports_agree_with_one_another_and_with_the_schema(tmp_path: Path) -> None:
    code, document = _reports(tmp_path, "--only", "limits,horovod")
    jsonschema.validate(document, SCHEMA)
    assert (code, document["counts"]["warned"]) == (0, 1)
    suite = ElementTree.parse(tmp_path / "r.xml").getroot()[0]
    assert suite.find("properties/property[@name='warned']").get("value") == "1"  # type: ignore[union-attr]
    (case,) = [one for one in suite.findall("testcase") if one.get("name") == "lim.shm"]
    said = {one.get("name"): one.get("value") for one in case.iter("property")}
    assert (said["outcome"], said["severity"]) == ("warned", "fail")
    assert "warning: /dev/shm has 1 GiB" in str(case.findtext("system-out"))
    page = (tmp_path / "r.md").read_text()
    assert "## Warned\n\n### lim.shm\n" in page
    assert "```sh\ndocker run --shm-size=32g IMAGE" in page
    assert as_data(from_data(document)) == document


@pytest.mark.usefixtures("roomy")
def test_checks_that_rest_for_one_reason_share_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _reports(tmp_path, "--only", "horovod")
    out = capsys.readouterr().out.splitlines()
    assert re.match(r"hvd\.dist +skip +\(not-in-recipe\) .*; and the next 9 checks$", out[0])
    assert out[-1].startswith("0 passed")
