"""Test remedies: their kinds, and how each report tells where a remedy has to be done."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from validate.check import FAILED, Check, CheckResult
from validate.remedy import (
    KINDS,
    SHELL,
    Remedy,
    as_remedy,
    at_launch,
    in_image,
    in_shell,
    on_host,
    only_look,
)
from validate.report.json_document import as_json, from_data
from validate.report.junit import as_junit
from validate.report.markdown import as_markdown
from validate.report.report import Report
from validate.report.table import as_table

CHECK = Check("lim.shm", "there is memory", "fail", "live", "c", Remedy())
LABELS = [
    (in_shell("do it"), "remedy: do it"),
    (at_launch("do it"), "remedy at launch: do it"),
    (in_image("do it"), "remedy in the image: do it"),
    (on_host("do it"), "remedy on the host: do it"),
    (only_look("do it"), "look:   do it"),
    (as_remedy("do it"), "remedy: do it"),
]


def report(remedy: Remedy) -> Report:
    found = CheckResult(CHECK, "limits", FAILED, "64 MiB", "c").with_remedy(remedy)
    return Report("i", "1", "full", [found], [], 0.1, 1)


@pytest.mark.parametrize(("remedy", "line"), LABELS)
def test_the_table_says_where_a_remedy_has_to_be_done(remedy: Remedy, line: str) -> None:
    assert as_table(report(remedy), colour=False).splitlines()[-1].strip() == line


def test_what_looks_is_apart_from_what_corrects() -> None:
    both = report(in_shell("rm /x", look="ls -l /x"))
    lines = [line.strip() for line in as_table(both, colour=False).splitlines()]
    assert lines[-2:] == ["remedy: rm /x", "look:   ls -l /x"]
    page = as_markdown(both)
    assert "Remedy:\n\n```sh\nrm /x\n```" in page
    assert "Look:\n\n```sh\nls -l /x\n```" in page
    properties = ElementTree.fromstring(as_junit(both)).findall(".//testcase/properties/property")
    named = {one.get("name"): one.get("value") for one in properties}
    assert named.items() >= {"remedy": "rm /x", "remedy_kind": SHELL, "look": "ls -l /x"}.items()
    data = json.loads(as_json(both))
    (row,) = data["checks"]
    assert (row["remedy"], row["remedy_kind"], row["look"]) == ("rm /x", "shell", "ls -l /x")
    assert from_data(data).results[0].kind == "shell"


def test_a_report_of_an_older_release_has_no_kinds() -> None:
    data = json.loads(as_json(report(in_shell("rm /x"))))
    for name in ("remedy_kind", "look"):
        del data["checks"][0][name]
    (read,) = from_data(data).results
    assert (read.remedy, read.kind, read.look) == ("rm /x", "", "")


def test_a_remedy_is_its_text_and_of_a_known_kind() -> None:
    assert in_shell("a") == "a"
    assert {one("a").kind for one in (in_shell, at_launch, in_image, on_host, only_look)} == {
        *KINDS
    }
    assert only_look("a") == ""
    assert only_look("a").given
    assert not Remedy().given
    with pytest.raises(ValueError, match="unknown kind of remedy hope"):
        Remedy("a", "hope")
