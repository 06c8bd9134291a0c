"""Test that the packages beside PyTorch are pinned once for each Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from packaging.requirements import Requirement

from unit.conftest import REPOSITORY

if TYPE_CHECKING:
    from imagegen.workflow.project import Project

CONSTRAINTS = REPOSITORY / "dockerfiles/build-env/torch-constraints.txt"
COMPILED = ("numpy", "pillow", "markupsafe")
"""Those that have a wheel for each Python of its own."""


def pins(minor: str) -> dict[str, list[str]]:
    """Return the versions that the constraints allow for a Python."""
    found: dict[str, list[str]] = {}
    for line in CONSTRAINTS.read_text().splitlines():
        if line and not line.startswith("#"):
            one = Requirement(line)
            if one.marker is None or one.marker.evaluate({"python_version": minor}):
                found.setdefault(one.name, []).append(str(one.specifier))
    return found


def test_no_package_is_pinned_twice_for_a_python(project: Project) -> None:
    rows = project.catalog.components["python"].releases
    minors = {".".join(row.version.split(".")[:2]) for row in rows}
    assert {"3.9", "3.15"} <= minors
    for minor in sorted(minors):
        assert [name for name, texts in pins(minor).items() if len(texts) > 1] == [], minor


@pytest.mark.parametrize("name", COMPILED)
def test_a_python_that_has_just_come_has_releases_of_its_own(name: str) -> None:
    assert len({pins(minor)[name][0] for minor in ("3.13", "3.14", "3.15")}) == 3
