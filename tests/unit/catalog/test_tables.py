"""Test releases in a CSV file: cells, columns, empty cells, and lines that do not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from imagegen.catalog.reader import read_catalog, read_table
from imagegen.catalog.tables import Table, rows_of
from imagegen.config.payload import Payload
from imagegen.errors import ConfigError
from unit.conftest import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.catalog.data import TableData
    from imagegen.errors import Problem
    from imagegen.model.release import Release
    from unit.conftest import Overlay

DATA: TableData = {
    "rows": {
        "wheel": {
            "version": "{version}",
            "requires": {"python": "{python}"},
            "built_for": {"cuda": "{cuda}"},
            "wheels": {"zeta-cu{major}": "{version}"},
            "facts": {"device": "gpu", "python": "{python}", "line": ["{version}", "x"]},
            "notes": ["made for {cuda}", "100% {version}"],
            "origin": "wheel {version}",
            "source": "{source}",
        },
        "apt": {
            "version": "{version}",
            "apt": {"zeta": "{version}-*"},
            "origin": "apt",
            "source": "x",
        },
    },
    "keys": {
        "source": {"s1": "the release notes", "talk": "a talk"},
        "family": {"old": {"major": "11"}},
    },
}
HEADER = "kind,version,python,cuda,family,source\n"
FIRST = "wheel,1.0,3.8 3.9,11.3,old,s1\n"


def table(folder: Path, text: str) -> Table:
    path = folder / "releases.csv"
    path.write_bytes(text.encode())
    return Table(path, "releases.csv", DATA)


def rows(folder: Path, text: str) -> list[tuple[int, dict[str, Any]]]:
    found = list(rows_of(table(folder, text)))
    assert [row.problem for row in found] == [None] * len(found)
    return [(row.line, row.release) for row in found]


def problem(folder: Path, text: str) -> Problem:
    (found,) = [row.problem for row in rows_of(table(folder, text)) if row.problem]
    return found


def test_a_line_is_a_release(tmp_path: Path) -> None:
    assert rows(tmp_path, HEADER + FIRST) == [
        (
            2,
            {
                "version": "1.0",
                "requires": {"python": ["3.8", "3.9"]},
                "built_for": {"cuda": "11.3"},
                "wheels": {"zeta-cu11": "1.0"},
                "facts": {"device": "gpu", "python": "3.8 3.9", "line": ["1.0", "x"]},
                "notes": ["made for 11.3", "100% 1.0"],
                "origin": "wheel 1.0",
                "source": "the release notes",
            },
        )
    ]


def test_what_speaks_of_an_empty_cell_is_left_out(tmp_path: Path) -> None:
    ((_, row),) = rows(tmp_path, HEADER + "wheel,2.0,3.9,,,talk\n")
    assert not {"built_for", "wheels"} & row.keys()
    assert (row["notes"], row["source"]) == (["100% 2.0"], "a talk")


def test_the_kind_of_a_line_says_what_its_columns_mean(tmp_path: Path) -> None:
    found = rows(tmp_path, HEADER + FIRST + "apt,1.0,,,,\n")
    assert found[1] == (
        3,
        {"version": "1.0", "apt": {"zeta": "1.0-*"}, "origin": "apt", "source": "x"},
    )


@pytest.mark.parametrize(
    "text", ["\ufeff" + HEADER + FIRST, (HEADER + FIRST).replace("\n", "\r\n")]
)
def test_a_file_that_a_spreadsheet_wrote_is_read(tmp_path: Path, text: str) -> None:
    assert rows(tmp_path, text) == rows(tmp_path, HEADER + FIRST)


@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        (HEADER + "wheel,1.0,3.8\n", 2, "", "has 3 cells, the header 6 columns"),
        (HEADER + FIRST + '"wheel,1.0\n', 3, "", "is not CSV: unexpected end of data"),
        (HEADER + "whel,1.0,,,,s1\n", 2, "kind", "`whel` is not an allowed value"),
        (HEADER + "wheel,1.0,,,,s2\n", 2, "source", "`s2` is not an allowed value"),
        (HEADER + "wheel,1.0,,,new,s1\n", 2, "family", "`new` is not an allowed value"),
        (
            HEADER + "apt,1.0,3.8,,,\n",
            2,
            "python",
            "`3.8` has no meaning in a row of kind `apt`",
        ),
        (HEADER.replace("python", "pyhton"), 1, "python", "is a column that is not in the header"),
        (HEADER.replace("\n", ",python\n"), 1, "python", "is a column twice"),
        (
            HEADER.replace("\n", ",colour\n"),
            1,
            "colour",
            "is a column that is not in `rows`",
        ),
        ("version,python,cuda,family,source\n", 1, "kind", "is a column that is not in the header"),
        ("", 1, "version", "is a column that is not in the header"),
    ],
)
def test_a_line_that_does_not_hold_is_told_with_its_column(
    tmp_path: Path, text: str, line: int, column: str, said: str
) -> None:
    found = [row.problem for row in rows_of(table(tmp_path, text)) if row.problem]
    assert (line, column, said) in [(one.line, one.key, one.text) for one in found]


def test_a_problem_reads_as_any_other(tmp_path: Path) -> None:
    assert str(problem(tmp_path, HEADER + "wheel,1.0,,,,x\n")) == (
        "error: releases.csv:2: `source`: `x` is not an allowed value\n"
        "  known: s1, talk\n"
        "\n"
        "hint: add it to `keys`"
    )


def test_a_file_that_is_not_utf_8_is_told(tmp_path: Path) -> None:
    path = tmp_path / "releases.csv"
    path.write_bytes(b"kind,version\nwheel,\xff\n")
    (found,) = rows_of(Table(path, "releases.csv", DATA))
    assert found.problem is not None
    assert found.problem.text.startswith("cannot be read: ")


def test_templates_are_read_backwards(tmp_path: Path) -> None:
    found = table(tmp_path, HEADER)
    release = {
        "version": "3.0",
        "requires": {"python": ["3.9", "3.10"]},
        "built_for": {"cuda": "12.4"},
    }
    cells = {"kind": "wheel", "version": "3.0", "python": "3.9 3.10", "cuda": "12.4"}
    assert found.cells_of("wheel", release) == cells
    assert found.header() == HEADER.strip().split(",")


COMPONENT = """\
name: zeta
title: Zeta
seconds: 1
suites: [zeta]
releases: []
rows:
  archive:
    version: "{{version}}"
    requires: {{os: "{{os}}"}}
    tarball: {{url: "{{url}}", sha256: "{{sha}}"}}
    origin: x
    source: "{{source}}"{more}
"""
CSV = "dockerfiles/components/zeta/releases.csv"
COLUMNS = "version,os,url,sha,source\n"
SHA = "0" * 64


def read(overlay: Overlay, line: str, more: str = "") -> Release:
    overlay.component("zeta", COMPONENT.format(more=more))
    overlay.write(CSV, f"{COLUMNS}{line}\n")
    (release,) = overlay.catalog.components["zeta"].releases
    return release


def refused(overlay: Overlay, line: str, more: str = "") -> str:
    with pytest.raises(ConfigError) as caught:
        read(overlay, line, more)
    return str(caught.value)


def test_a_release_knows_its_line(overlay: Overlay) -> None:
    release = read(overlay, f"1.0,,https://example.org/a.tgz,{SHA},a page")
    assert (release.line, release.tarball["sha256"]) == (2, SHA)
    assert release.file.endswith(CSV)
    assert release.ways == ("tarball",)


def test_a_hash_may_be_said_to_be_unverified(overlay: Overlay) -> None:
    release = read(overlay, "1.0,,https://example.org/a.tgz,unverified,a page")
    assert release.tarball["sha256"] == "unverified"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (f"1.0,,https://example.org/a.tgz,{SHA},", ":2: key `source` is missing"),
        ("1.0,,https://example.org/a.tgz,,a page", ":2: `url, sha`: key `sha256` is missing"),
        (
            "1.0,,https://example.org/a.tgz,abc,a page",
            ":2: `sha`: the value is not ",
        ),
        (f"1.0,,https://x/$(id),{SHA},a page", ":2: `url`: the value is not "),
        (f"one,,https://example.org/a.tgz,{SHA},a page", ":2: `version`: `one` is not a version"),
        (f"1.0,,https://example.org/a.tgz,{SHA}", ":2: has 4 cells, the header 5 columns"),
    ],
)
def test_a_line_that_is_no_release_names_its_column(overlay: Overlay, line: str, said: str) -> None:
    assert f"{CSV}{said}" in refused(overlay, line)


def test_what_is_wrong_in_a_template_is_told_once_and_where_it_stands(overlay: Overlay) -> None:
    good = f"1.0,,https://example.org/a.tgz,{SHA},a page"
    text = refused(overlay, f"{good}\n{good.replace('1.0', '2.0')}", "\n    limits: {driver: '>='}")
    assert text.count("error: ") == 1
    assert "zeta/component.yaml:13: `rows.archive.limits.driver`: " in text
    assert "not known here" in refused(overlay, good, "\n    colour: red")


def test_an_unknown_os_is_told_with_its_line(overlay: Overlay) -> None:
    line = f"1.0,debian99,https://example.org/a.tgz,{SHA},a page"
    assert f"{CSV}:2: requires the OS `debian99`, which does not exist" in refused(overlay, line)


def test_a_table_needs_both_of_its_files(overlay: Overlay) -> None:
    overlay.component("zeta", COMPONENT.format(more=""))
    with pytest.raises(
        ConfigError, match=r"`rows`: there is no dockerfiles/components/zeta/releases\.csv"
    ):
        _ = overlay.catalog
    overlay.write("dockerfiles/components/alpha/releases.csv", COLUMNS)
    overlay.write(CSV, COLUMNS)
    with pytest.raises(
        ConfigError, match=r"alpha/releases\.csv:1: no `rows` in .* says what its columns"
    ):
        _ = overlay.catalog


def test_an_overlay_may_replace_either_file(overlay: Overlay, tmp_path: Path) -> None:
    read(overlay, f"1.0,,https://example.org/a.tgz,{SHA},a page")
    lower, upper = overlay.root, tmp_path / "upper"
    payload = Payload((upper, lower), (upper, lower))
    folder = upper / "dockerfiles/components/zeta"
    folder.mkdir(parents=True)

    def versions() -> list[str]:
        return [one.version for one in read_catalog(payload).components["zeta"].releases]

    (folder / "releases.csv").write_text(f"{COLUMNS}2.0,,https://example.org/a.tgz,{SHA},a page\n")
    assert versions() == ["2.0"]
    (folder / "releases.csv").unlink()
    (folder / "component.yaml").write_text(COMPONENT.format(more="\n    notes: [new]"))
    assert versions() == ["1.0"]
    alone = "name: zeta\ntitle: Z\nseconds: 1\nsuites: [zeta]\nreleases:\n"
    alone += "  - {version: '3.0', origin: x, source: the test}\n"
    (folder / "component.yaml").write_text(alone)
    assert versions() == ["3.0"]
    assert read_table(payload, "zeta") is None


SHIPPED = Payload((REPOSITORY,), (REPOSITORY,))


def test_what_is_shipped_holds_against_the_schema() -> None:
    catalog = read_catalog(SHIPPED, check_shipped=True)
    assert sum(len(one.releases) for one in catalog.components.values()) > 600
    for one in catalog.components.values():
        for release in one.releases:
            assert len(release.source) > 10, release.where
            assert set(release.tarball) in (set(), {"url", "sha256"}), release.where


def test_files_of_the_catalog_have_no_line_that_is_too_long_to_read() -> None:
    long = [
        f"{path.relative_to(REPOSITORY)}:{number}"
        for path in SHIPPED.catalog_files()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > 225
    ]
    assert long == []
