"""Mark each instruction of a template, to find its template line in the rendered text.

The marks, with the position of each instruction, are added before Jinja compiles a template, and
taken out after rendering.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_INSTRUCTION = re.compile(
    r"((?:\{%(?:(?!%\}).)*%\})*)(?=RUN |COPY |ADD |WORKDIR |\{\{ [a-z_]+\.[a-z_]+\()"
)
"""An instruction at the start of a line, where tags before it leave no text."""
_MARKS = re.compile("\x01([^\x02]*)\x02")
_FIRST_MARKS = re.compile("^" + _MARKS.pattern, re.MULTILINE)


class Mark(NamedTuple):
    """The position of an instruction: its template's path below `dockerfiles/`, and line from 1."""

    template: str
    line: int


def marked(source: str, template: str) -> str:
    """Add a mark before each instruction in the source of a template."""
    lines = source.split("\n")
    for number, line in enumerate(lines, 1):
        if found := _INSTRUCTION.match(line):
            tags, rest = found[1], line[found.end() :]
            lines[number - 1] = f"{tags}\x01{template}:{number}\x02{rest}"
    return "\n".join(lines)


def split_marks(text: str) -> tuple[str, tuple[Mark, ...]]:
    """Take the marks out of a text, and return with it the outermost template line of each."""
    marks = []
    for found in _FIRST_MARKS.finditer(text):
        template, _, number = found.group(1).rpartition(":")
        marks.append(Mark(template, int(number)))
    return without_marks(text), tuple(marks)


def without_marks(text: str) -> str:
    """Remove the marks from a text."""
    return _MARKS.sub("", text)
