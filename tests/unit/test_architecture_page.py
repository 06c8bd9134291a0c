"""Test that docs/architecture.md says what the source says: rooms, floors, files."""

from __future__ import annotations

import re

from unit.conftest import REPOSITORY
from unit.test_architecture import FLOORS

PAGE = (REPOSITORY / "docs/architecture.md").read_text(encoding="utf-8")
PACKAGE = REPOSITORY / "imagegen"


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def rows(title: str) -> list[list[str]]:
    lines = [line for line in section(title).splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in cells[1:] if not row[0].startswith("---")]


def test_the_house_has_its_rooms_on_their_floors() -> None:
    said = {(int(floor), room.strip("`")) for floor, room, _ in rows("The house")}
    assert said == {(number, room) for number, floor in enumerate(FLOORS, 1) for room in floor}


def test_every_file_that_the_page_names_is_there() -> None:
    files = set(re.findall(r"`([a-z_/]+/[a-z_]+\.py)`", PAGE))
    assert len(files) > 15
    assert [name for name in sorted(files) if not (PACKAGE / name).is_file()] == []


def test_every_old_name_leads_to_modules_that_are_there() -> None:
    names = [name for _, new in rows("Old names") for name in re.findall(r"`([^`]+)`", new)]
    assert len(names) > 80
    assert [name for name in names if not (PACKAGE / f"{name}.py").is_file()] == []
