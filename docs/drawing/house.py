"""The house: the rooms of the source on their floors, as docs/architecture.md has them."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from svg import BOLD, GREY, LEFT, LINE, Box, arrow, lines, picture, text

if TYPE_CHECKING:
    from pathlib import Path

FILLS = {
    7: "#fdf3e1",
    6: "#fdf3e1",
    5: "#eaf6ea",
    4: "#e8f1fb",
    3: "#f1ecf9",
    2: "#f3f3f3",
    1: "#f3f3f3",
}
WIDTH, GAP, LEFT_SIDE, ROOF = 1240, 10, 78, 84
LETTER = 6.1
"""How wide a letter of the smaller text is."""


def rooms(page: Path) -> dict[int, list[tuple[str, str]]]:
    """Floor -> its rooms with what happens there, from the table of the page."""
    found: dict[int, list[tuple[str, str]]] = {}
    section = page.read_text(encoding="utf-8").split("\n## The house\n", 1)[1].split("\n## ", 1)[0]
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if len(cells) == 3 and cells[0].isdigit():
            found.setdefault(int(cells[0]), []).append(
                (cells[1].strip("`"), cells[2].replace("`", ""))
            )
    return found


def house(page: Path) -> str:
    """Draw the floors, the highest at the top."""
    floors = rooms(page)
    middle, inner = (WIDTH + LEFT_SIDE) / 2, WIDTH - LEFT_SIDE - GAP
    roof = f"{LEFT_SIDE - 14},{ROOF} {middle:g},14 {WIDTH},{ROOF}"
    body = [f'<polygon points="{roof}" fill="#f7e3e0" stroke="{LINE}"/>']
    body.append(text(middle, ROOF - 18, "imagegen", 20, BOLD))
    top = ROOF + GAP
    for number, inside in sorted(floors.items(), reverse=True):
        width = round((inner - GAP * (len(inside) - 1)) / len(inside), 1)
        characters = int(width / LETTER)
        height = 36 + 14 * max(len(wrap(role, characters)) for _, role in inside)
        body.append(text(LEFT_SIDE - 42, top + height / 2 + 6, str(number), 20, BOLD, GREY))
        for place, (name, role) in enumerate(inside):
            box = Box(LEFT_SIDE + place * (width + GAP), top, width, height, FILLS[number])
            body += [box.draw, text(box.middle, top + 22, f"{name}/", 15, BOLD)]
            body += lines(box, top + 41, role, characters)
        top += height + GAP
    body.append(arrow([(14, ROOF + GAP), (14, top - GAP)]))
    said = "A module imports its own room and rooms of lower floors. errors.py and text.py are "
    body.append(text(LEFT_SIDE, top + 12, said + "open to every room.", 12, LEFT, GREY))
    return picture(WIDTH + 4, top + 26, "The house: the rooms of imagegen on their floors", body)
