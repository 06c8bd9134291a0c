"""Test that `imagegen validate` does not repeat checks that passed in the same image and host."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree

if TYPE_CHECKING:
    from pathlib import Path

    from tiny_family import TinyFamily


def test_what_passed_is_skipped_and_what_failed_runs(tiny: TinyFamily, tmp_path: Path) -> None:
    tiny.check()
    tiny.write_matrix({"os": ["tiny12"], "check": ["1", "2"]}, {})
    tiny.build("--no-validate")
    good, bad = "*-1", "*-2"
    assert "tiny.verdict  passed" in tiny.command("validate", good).out
    skipped = tiny.command("validate", good).out
    assert "tiny.verdict" not in skipped
    assert "skipped: passed at " in skipped
    assert ", same image, same checks, same host; `--again` runs them" in skipped
    junit = tmp_path / "r.xml"
    tiny.command("validate", "--junit", str(junit), good, bad, code=7)
    suites = {one.get("name", "")[-1]: one for one in ElementTree.parse(junit).getroot()}
    assert suites["1"].find("properties/property[@name='earlier']").get("value") == "4"  # type: ignore[union-attr]
    assert (suites["1"].get("failures"), suites["2"].get("failures")) == ("0", "1")
    (row,) = tiny.command("validate", "--format", "json", good).result
    assert (row["passed"], row["tier"], row["id"]) == (True, "full", tiny.built()["tiny12-1"].id)
    assert [check["id"] for check in row["report"]["checks"]] == [
        "tiny.verdict",
        "image.private-key-in-layer",
        "image.secret-in-layer",
        "image.secret-in-settings",
    ]
    at = skipped.partition("passed at ")[2].partition(",")[0]
    assert {check["earlier"] for check in row["report"]["checks"]} == {at}
    assert "tiny.verdict  passed" in tiny.command("validate", "--static", good).out
    assert "tiny.verdict  passed" in tiny.command("validate", "--again", good).out
    for _ in range(2):
        assert "tiny.verdict  failed" in tiny.command("validate", bad, code=7).out
