"""Marks in a rendered text say which template line each instruction came from.

Each instruction line of a template is marked with its position before Jinja compiles it; after
rendering the marks are taken out again.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_INSTRUCTION = re.compile(r"((?:\{%.*?%\})*)(?=RUN |COPY |ADD |WORKDIR |\{\{ [a-z_]+\.[a-z_]+\()")
"""At the start of a line, where tags before it leave nothing behind."""
_MARKS = re.compile("\x01([^\x02]*)\x02")
_FIRST_MARKS = re.compile("^" + _MARKS.pattern, re.MULTILINE)


class Mark(NamedTuple):
    """Position of an instruction in a template: path below `dockerfiles/` and 1-based line."""

    template: str
    line: int


def marked(source: str, template: str) -> str:
    """The source of a template with a mark before each instruction."""
    lines = source.split("\n")
    for number, line in enumerate(lines, 1):
        if found := _INSTRUCTION.match(line):
            tags, rest = found[1], line[found.end() :]
            lines[number - 1] = f"{tags}\x01{template}:{number}\x02{rest}"
    return "\n".join(lines)


def split_marks(text: str) -> tuple[str, tuple[Mark, ...]]:
    """The text without marks, and for each instruction in it the outermost template line."""
    marks = []
    for found in _FIRST_MARKS.finditer(text):
        template, _, number = found.group(1).rpartition(":")
        marks.append(Mark(template, int(number)))
    return without_marks(text), tuple(marks)


def without_marks(text: str) -> str:
    return _MARKS.sub("", text)
