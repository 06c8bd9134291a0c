"""A few shapes of SVG, with the same bytes each time."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

FONT = "Helvetica,Arial,sans-serif"
DARK, GREY, LINE = "#222", "#666", "#555"
_ARROW = (
    '<defs><marker id="a" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
    'orient="auto"><path d="M0,0 L10,5 L0,10 z" fill="#555"/></marker></defs>'
)


@dataclass(frozen=True)
class Box:
    """A rectangle with round corners."""

    x: float
    y: float
    width: float
    height: float
    fill: str = "#ffffff"

    @property
    def middle(self) -> float:
        """Return the x of its middle."""
        return self.x + self.width / 2

    @property
    def right(self) -> float:
        """Return the x of its right side."""
        return self.x + self.width

    @property
    def draw(self) -> str:
        """Write it as an element of SVG."""
        return (
            f'<rect x="{self.x:g}" y="{self.y:g}" width="{self.width:g}" height="{self.height:g}" '
            f'rx="6" fill="{self.fill}" stroke="{LINE}"/>'
        )


def text(x: float, y: float, words: str, size: int = 12, style: str = "", fill: str = DARK) -> str:
    """Write a line of text; `style` has attributes of its own."""
    anchor = "" if "text-anchor" in style else ' text-anchor="middle"'
    more = f" {style}" if style else ""
    return (
        f'<text x="{x:g}" y="{y:g}"{anchor} font-size="{size}" fill="{fill}"{more}>'
        f"{escape(words)}</text>"
    )


LEFT = 'text-anchor="start"'
BOLD = 'font-weight="bold"'
ITALIC = 'font-style="italic"'


def lines(box: Box, y: float, words: str, characters: int, size: int = 11) -> list[str]:
    """Words in lines of so many characters, from a height of the box on."""
    step = size + 3
    return [
        text(box.middle, y + step * number, line, size, fill="#333")
        for number, line in enumerate(wrap(words, characters))
    ]


def arrow(points: Sequence[tuple[float, float]], stroke: str = LINE) -> str:
    """Draw a line through points, with a head at its end."""
    path = " L".join(f"{x:g},{y:g}" for x, y in points)
    return (
        f'<path d="M{path}" fill="none" stroke="{stroke}" stroke-width="1.6" marker-end="url(#a)"/>'
    )


def joint(points: Sequence[tuple[float, float]]) -> str:
    """Draw a line through points, without a head."""
    path = " L".join(f"{x:g},{y:g}" for x, y in points)
    return f'<path d="M{path}" fill="none" stroke="{LINE}" stroke-width="1.2"/>'


def picture(width: float, height: float, label: str, body: Iterable[str]) -> str:
    """Write a whole file."""
    size = f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}"'
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{FONT}" role="img" '
        f'aria-label="{escape(label)}">'
    )
    back = f'<rect width="{width:g}" height="{height:g}" fill="#ffffff"/>'
    return "\n".join([head, _ARROW, back, *body, "</svg>"]) + "\n"
