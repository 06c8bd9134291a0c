"""Test releases as a table: cells, columns, empty cells, and rows that do not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from imagegen.catalog.reader import read_catalog
from imagegen.catalog.tables import rows_of
from imagegen.errors import ConfigError
from imagegen.renderer.ways import ways_of
from unit.conftest import REPOSITORY

if TYPE_CHECKING:
    from imagegen.catalog.data import TableData
    from imagegen.model.catalog import Release
    from unit.conftest import Overlay

TABLE: TableData = {
    "columns": ["version", "python", "cuda", "source"],
    "row": {
        "version": "{version}",
        "requires": {"python": "{python}"},
        "built_for": {"cuda": "{cuda}"},
        "facts": {"device": "gpu", "python": "{python}", "line": ["{version}", "x"]},
        "notes": ["made for {cuda}"],
        "origin": "wheel {version}",
        "source": "{source}",
    },
    "sources": {"s1": "the release notes"},
    "lines": "1.0 | 3.8 3.9 | 11.3 | s1\n# a comment\n\n2.0 | 3.9 | - | a talk\n",
}


def rows(**changed: Any) -> list[tuple[int, dict[str, Any], str]]:
    return list(rows_of(cast("TableData", {**TABLE, **changed})))


def test_a_line_is_a_release() -> None:
    number, row, problem = rows()[0]
    assert (number, problem) == (0, "")
    assert row == {
        "version": "1.0",
        "requires": {"python": ["3.8", "3.9"]},
        "built_for": {"cuda": "11.3"},
        "facts": {"device": "gpu", "python": "3.8 3.9", "line": ["1.0", "x"]},
        "notes": ["made for 11.3"],
        "origin": "wheel 1.0",
        "source": "the release notes",
    }


def test_what_speaks_of_an_empty_cell_is_left_out() -> None:
    number, row, _ = rows()[1]
    assert number == 3
    assert "built_for" not in row
    assert "notes" not in row
    assert row["source"] == "a talk"


def test_a_line_with_too_few_cells_is_told() -> None:
    assert rows(lines="1.0 | 3.8\n") == [(0, {}, "has 2 cells, the table 4 columns")]


COMPONENT = """\
name: zeta
title: Zeta
seconds: 1
suites: [zeta]
releases: []
tables:
  - columns: [version, url, sha, source]
    row: {{version: "{{version}}", tarball: {{url: "{{url}}", sha256: "{{sha}}"}}, origin: x,
      source: "{{source}}"{more}}}
    lines: |
      {line}
"""
SHA = "0" * 64


def read(overlay: Overlay, line: str, more: str = "") -> Release:
    overlay.component("zeta", COMPONENT.format(line=line, more=more))
    (release,) = overlay.catalog.components["zeta"].releases
    return release


def test_a_row_knows_its_line(overlay: Overlay) -> None:
    release = read(overlay, f"1.0 | https://example.org/a.tgz | {SHA} | a page")
    assert (release.line, release.tarball["sha256"]) == (11, SHA)
    assert release.where.startswith("zeta 1.0 (")
    assert ways_of(release) == ("tarball",)


def test_a_hash_may_be_said_to_be_unverified(overlay: Overlay) -> None:
    release = read(overlay, "1.0 | https://example.org/a.tgz | unverified | a page")
    assert release.tarball["sha256"] == "unverified"


@pytest.mark.parametrize(
    ("line", "more", "said"),
    [
        (f"1.0 | https://example.org/a.tgz | {SHA} | -", "", "key `source` is missing"),
        ("1.0 | https://example.org/a.tgz | - | a page", "", "key `sha256` is missing"),
        ("1.0 | https://example.org/a.tgz | abc | a page", "", "is not text that matches"),
        (f"1.0 | https://x/$(id) | {SHA} | a page", "", "is not text that matches"),
        (f"one | https://example.org/a.tgz | {SHA} | a page", "", "`one` is not a version"),
        (f"1.0 | https://example.org/a.tgz | {SHA} | a page", ", colour: red", "not known here"),
        (f"1.0 | https://example.org/a.tgz | {SHA}", "", "has 3 cells, the table 4 columns"),
    ],
)
def test_a_row_that_does_not_hold_is_refused(
    overlay: Overlay, line: str, more: str, said: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read(overlay, line, more)
    assert any(said in str(problem) for problem in caught.value.problems), str(caught.value)


def test_what_is_shipped_holds_against_the_schema() -> None:
    from imagegen.config.payload import Payload

    catalog = read_catalog(Payload((REPOSITORY,), (REPOSITORY,)), check_shipped=True)
    assert sum(len(one.releases) for one in catalog.components.values()) > 600
    for one in catalog.components.values():
        for release in one.releases:
            assert len(release.source) > 10, release.where
            assert set(release.tarball) in (set(), {"url", "sha256"}), release.where
