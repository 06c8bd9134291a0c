"""What a terminal shows, as SVG: rich draws it, with no font from the network."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from rich.console import Console
from rich.terminal_theme import TerminalTheme

if TYPE_CHECKING:
    from rich.console import RenderableType

FORM = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{
  font-family: Menlo, Consolas, DejaVu Sans Mono, monospace; font-size: {char_height}px;
  line-height: {line_height}px; font-variant-east-asian: full-width;
}}
.{unique_id}-title {{
  font-size: 18px; font-weight: bold; font-family: Helvetica, Arial, sans-serif;
}}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""rich's own form names a font on a host that a closed network does not reach."""

DARK = TerminalTheme(
    (24, 27, 31),
    (215, 218, 222),
    [
        (24, 27, 31),
        (232, 95, 88),
        (106, 190, 96),
        (222, 178, 74),
        (86, 156, 224),
        (190, 130, 210),
        (80, 184, 190),
        (215, 218, 222),
    ],
)


def screen(columns: int) -> Console:
    """Make a terminal of so many columns that keeps what is printed."""
    return Console(
        record=True,
        width=columns,
        height=50,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
        legacy_windows=False,
        _environ={},
    )


def svg_of(console: Console, name: str, title: str) -> str:
    """Show what was printed, in a window with a title."""
    svg = console.export_svg(title=title, theme=DARK, code_format=FORM, unique_id=name)
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


def picture_of(name: str, title: str, columns: int, *shown: RenderableType) -> str:
    """Draw a window that shows these, one below the other."""
    console = screen(columns)
    for one in shown:
        console.print(one, soft_wrap=True)
    return svg_of(console, name, title)
