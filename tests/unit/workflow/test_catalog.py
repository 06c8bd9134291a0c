"""Test the page of `imagegen catalog`: rows of the catalog, and rows that an index would add."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from imagegen.workflow import catalog as page

if TYPE_CHECKING:
    from collections.abc import Callable

    from unit.conftest import Ended

pytestmark = pytest.mark.usefixtures("small")


def test_every_component_has_a_line(run: Callable[..., Ended]) -> None:
    lines = [line.split() for line in run("catalog").out.splitlines()]
    assert lines[0][:2] == ["component", "releases"]
    assert ["os", "2", "distribution", "releases"] in lines
    assert ["beta", "2", "1.13.1", "..", "2.6.0", "Beta"] in lines


def test_one_component_shows_what_its_releases_need(run: Callable[..., Ended]) -> None:
    rows = json.loads(run("catalog", "beta", "--format", "json").out)
    assert [(row["version"], row["requires"]["os"]) for row in rows] == [
        ("1.13.1", ["debian12"]),
        ("2.6.0", ["debian13"]),
    ]
    assert "os debian12; alpha >=3" in run("catalog", "beta").out
    assert "debian:12-slim" in run("catalog", "os").out


def test_a_misspelt_component_is_told_with_its_neighbours(run: Callable[..., Ended]) -> None:
    ended = run("catalog", "betta")
    assert (ended.code, ended.err.splitlines()[0]) == (
        3,
        "error: the catalog has no component `betta`",
    )
    assert "hint: did you mean `beta`?" in ended.err


def test_refresh_proposes_what_the_index_has(
    run: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    links = [
        f"  Found link https://i.example/f/beta-{version}-cp313-cp313-manylinux_2_28_x86_64.whl"
        f"#sha256={'a' * 64} (from x)"
        for version in ("2.7.0", "2.8.0", "2.9.0")
    ]
    monkeypatch.setattr(page, "pip_says", lambda *_: links)
    asked: list[str] = []

    def metadata(project: str, version: str, *_: str) -> dict[str, object]:
        asked.append(f"{project} {version}")
        return {"requires_dist": ["gamma==1.0"]}

    monkeypatch.setattr(page, "pip_metadata", metadata)
    arguments = ("catalog", "refresh", "beta", "--limit", "2", "--metadata", "--format", "json")
    rows = json.loads(run(*arguments).out)
    assert [row["version"] for row in rows] == ["2.9.0", "2.8.0"]
    assert (asked, rows[0]["notes"]) == (
        ["beta 2.9.0", "beta 2.8.0"],
        ["its metadata asks for gamma==1.0"],
    )
    ended = run("catalog", "refresh", "beta", "--limit", "2")
    assert "  - version: 2.9.0" in ended.out
    assert ended.err == "1 more: --limit 3\n"
