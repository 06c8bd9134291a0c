"""Files that are made of the catalog and of the checks: `make generated` writes them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from imagegen.catalog import components_json
from imagegen.catalog.reader import read_catalog
from imagegen.config.payload import Payload

REPOSITORY = Path(__file__).parents[2]


def made_components() -> bytes:
    catalog = read_catalog(Payload((REPOSITORY,), (REPOSITORY,)))
    return components_json.components_json(catalog)


def made_page() -> bytes:
    """In a process of its own, which reads the components as they were just written."""
    asked = [sys.executable, "-m", "validate", "--catalogue"]
    return subprocess.run(asked, cwd=REPOSITORY, capture_output=True, check=True).stdout


# The page is made of the components: it comes after them.
GENERATED = {components_json.FILE: made_components, "validate/CHECKS.md": made_page}


@pytest.mark.parametrize("file", GENERATED)
def test_a_generated_file_is_current(file: str, update: bool) -> None:
    path, made = REPOSITORY / file, GENERATED[file]()
    if update:
        path.write_bytes(made)
    assert path.read_bytes() == made, f"{file} is old: make generated"
