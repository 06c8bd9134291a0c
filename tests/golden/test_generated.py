"""Files that are made of the catalog and of the checks: `make generated` writes them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from imagegen.catalog import components_json, known_bad
from imagegen.catalog.reader import read_catalog
from imagegen.catalog.rules import as_page, read_rules
from imagegen.config.payload import Payload
from imagegen.matrix.reader import matrix_names, read_matrix

REPOSITORY = Path(__file__).parents[2]
MATRICES_PAGE = "docs/matrices.md"
TABLE = re.compile(r"(<!-- matrices: .*-->\n).*(<!-- end of matrices -->)", re.DOTALL)


def made_components() -> bytes:
    catalog = read_catalog(Payload((REPOSITORY,), (REPOSITORY,)))
    return components_json.components_json(catalog)


def made_known_bad() -> bytes:
    return known_bad.known_bad_json(read_catalog(Payload((REPOSITORY,), (REPOSITORY,))))


def made_page() -> bytes:
    """In a process of its own, which reads the components as they were just written."""
    asked = [sys.executable, "-m", "validate", "--catalogue"]
    return subprocess.run(asked, cwd=REPOSITORY, capture_output=True, check=True).stdout


def made_rules() -> bytes:
    return as_page(read_rules(Payload((REPOSITORY,), (REPOSITORY,)))).encode()


def made_table() -> bytes:
    """The page of matrices, with a row for each of those that travel with the tool."""
    payload = Payload((REPOSITORY,), (REPOSITORY,))
    catalog = read_catalog(payload)
    rows = ["| matrix | what it is | OS | images |", "| --- | --- | --- | --- |"]
    for name in matrix_names(payload):
        matrix = read_matrix(payload, name, catalog)
        systems = dict.fromkeys(cell.values["os"] for cell in matrix.cells)
        count = str(len(matrix.cells))
        rows.append(f"| `{name}` | {matrix.title} | {', '.join(systems)} | {count} |")
    text = (REPOSITORY / MATRICES_PAGE).read_text()
    return TABLE.sub(lambda found: f"{found[1]}{chr(10).join(rows)}\n{found[2]}", text).encode()


# The page is made of the components: it comes after them.
GENERATED = {
    "docs/rules.md": made_rules,
    components_json.FILE: made_components,
    known_bad.FILE: made_known_bad,
    "validate/CHECKS.md": made_page,
    MATRICES_PAGE: made_table,
}


@pytest.mark.parametrize("file", GENERATED)
def test_a_generated_file_is_current(file: str, update: bool) -> None:
    path, made = REPOSITORY / file, GENERATED[file]()
    if update:
        path.write_bytes(made)
    assert path.read_bytes() == made, f"{file} is old: make generated"
