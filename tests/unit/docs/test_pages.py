"""Test that the pages say what the source says: lengths, links, tables."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

import pytest
import yaml
from pages import PAGES, REPOSITORY, blocks, prints, write_files

from imagegen.catalog.known_bad import SCHEMA
from imagegen.config.launch_schema import LAUNCH
from imagegen.config.patterns import properties_of
from imagegen.config.payload import Payload
from imagegen.config.schemas import CHECKS, COMPONENT, MATRIX, REQUEST
from imagegen.errors import EXIT_CODES
from imagegen.sources.artifacts import read_artifacts
from imagegen.sources.mirrors import read_mirrors

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

README = REPOSITORY / "README.md"
DOCS = REPOSITORY / "docs"
MOST_LINES_OF_README = 130
MOST_WORDS = 30
"""The most words of a sentence."""


def first_cells(page: Path, head: str) -> list[str]:
    """Return the first column of the table whose head begins with `head`."""
    lines = page.read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"| {head} |"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append(line.strip("|").split(" | ")[0].strip())
    return rows


def test_the_readme_is_short() -> None:
    assert len(README.read_text().splitlines()) <= MOST_LINES_OF_README


def test_the_readme_leads_to_every_page() -> None:
    links = set(re.findall(r"\]\((docs/[a-z-]+\.md)\)", README.read_text()))
    assert {page.relative_to(REPOSITORY).as_posix() for page in DOCS.glob("*.md")} <= links


def anchors(page: Path) -> set[str]:
    """Return the anchors that code hosts make of the headings."""
    heads = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^a-z0-9 -]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text()):
        name, _, anchor = target.partition("#")
        there = page.parent / name if name else page
        assert there.exists(), f"{page.name}: {target}"
        assert not anchor or anchor in anchors(there), f"{page.name}: {target}"


def test_the_exit_codes_are_those_of_the_command_line() -> None:
    page = DOCS / "getting-started.md"
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", page.read_text(), re.MULTILINE)
    assert [(int(code), text) for code, text in rows] == [*EXIT_CODES]


def test_the_keys_of_a_matrix_are_those_of_its_schema() -> None:
    cells = first_cells(DOCS / "matrices.md", "key")
    keys = [key for cell in cells for key in re.findall(r"`([a-z_]+)`", cell)]
    properties = MATRIX["properties"]
    assert isinstance(properties, dict)
    assert sorted(keys) == sorted(properties)


def test_the_keys_of_a_component_are_those_of_its_schema() -> None:
    page = (REPOSITORY / "CONTRIBUTING.md").read_text()
    guide = page[page.index("## Add a component") : page.index("## Add an OS")]
    cells = " ".join(re.findall(r"^\| (`.*?) \| ", guide, re.MULTILINE))
    keys = re.findall(r"`([a-z_]+)`", cells)
    inner = {"request": REQUEST, "checks": CHECKS, "launch": LAUNCH}
    assert {*keys, *inner} == {*properties_of(COMPONENT)}
    for name, schema in inner.items():
        found = re.findall(rf"`{name}: {{([a-z_]+)}}`", cells)
        assert sorted(found) == sorted(properties_of(schema)), name


def test_the_keys_of_a_known_bad_row_are_those_of_its_schema() -> None:
    page = (REPOSITORY / "CONTRIBUTING.md").read_text()
    start = page.index("## Add a combination that is known to fail")
    cells = re.findall(
        r"^\| (`.*?) \| ", page[start : page.index("\n## ", start + 1)], re.MULTILINE
    )
    assert {*re.findall(r"`([a-z_]+)`", " ".join(cells))} == {*properties_of(SCHEMA)}


def test_every_matrix_is_on_the_page() -> None:
    named = [cell.strip("`") for cell in first_cells(DOCS / "matrices.md", "matrix")]
    found = sorted(path.stem for path in (REPOSITORY / "matrices").glob("*.yaml"))
    assert named == found, "make generated"


def test_the_files_of_closed_networks_are_read(tmp_path: Path) -> None:
    write_files(DOCS / "closed-networks.md", tmp_path)
    payload = Payload((tmp_path,), (tmp_path,))
    assert [*read_mirrors(payload)] == ["https://vendor.example/"]
    assert read_artifacts(payload).find("harp", "1.3", "ubuntu20.04") is not None


def test_pieces_of_a_matrix_have_the_keys_of_its_schema() -> None:
    """Blocks of YAML that are no file of their own."""
    pieces = [
        yaml.safe_load("\n".join(block.lines))
        for page in PAGES
        for block in blocks(page)
        if block.language == "yaml" and not block.file
    ]
    assert pieces != []
    known = cast("Mapping[str, Mapping[str, Any]]", MATRIX["properties"])
    for piece in pieces:
        for key, value in piece.items():
            assert {*value} <= {*known[key].get("properties", value)}, piece


def prose(page: Path) -> str:
    """Return the sentences of a page, without blocks, tables, headings and pictures."""
    text = re.sub(r"^```.*?^```$", "\n", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^(\||#|!\[).*$", "", text, flags=re.MULTILINE)
    return re.sub(r"^(- |\d+\. )", "\n\n", text, flags=re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_sentences_are_short(page: Path) -> None:
    paragraphs = re.split(r"\n\s*\n", prose(page))
    sentences = [s for one in paragraphs for s in re.split(r"(?<=[.:!?;])\s+", one)]
    assert [s for s in sentences if len(s.split()) > MOST_WORDS] == []


def test_a_line_of_dots_stands_for_any_lines() -> None:
    assert prints(["one", "…", "four"], "one\ntwo\nthree\nfour\n")
    assert prints(["one", "…"], "one\n")
    assert prints(["o… b"], "one  b\n")
    assert not prints(["one", "four"], "one\ntwo\nfour\n")
    assert not prints(["one"], "one two\n")
