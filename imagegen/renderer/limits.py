"""Limit what a template may do, by counting: the same input gives the same answer everywhere.

No clock and no memory limit decides. Work is counted in characters and items: each turn of a loop,
each call, and each text that is made costs some. What would be too large is refused before it is
made, such as `'x' * 10**10`. Chance and addresses of objects have no place in a recipe either.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING

from jinja2 import TemplateRuntimeError

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_TEXT = 1_000_000
"""The most characters of one text, and items of one list."""

MOST_WORK = 10_000_000
"""The most work of one rendering; a Dockerfile of 20 components takes a hundredth of it."""

TURN = 200
"""The work of a turn of a loop, or of a call, beside the characters that it makes."""

MOST_BITS = 4096
MOST_WIDTH = 1000
MOST_CALLS_DEEP = 50
MOST_TEMPLATES = 100
MOST_NESTED = 12

_ADDRESS = re.compile(r"<[^<>]* at 0x[0-9a-f]+>")
_FIELD = re.compile(r"%(\([^)]*\))?([^a-zA-Z%]*)")


class TooMuch(TemplateRuntimeError):
    """A template would do more than it may."""


class Budget:
    """Count the work of one rendering; what is done while a template is compiled is free."""

    def __init__(self) -> None:
        self.compiling = 0
        self.begin()

    def begin(self) -> None:
        """Begin a rendering."""
        self.work = self.deep = self.templates = 0

    def charge(self, work: int) -> None:
        """Count work. Raises TooMuch where it is more than MOST_WORK."""
        if self.compiling:
            return
        self.work += work
        if self.work > MOST_WORK:
            raise TooMuch(f"the template does more than {MOST_WORK} steps")

    def begin_template(self, work: int) -> None:
        """Count a template that is begun, included or imported. Raises TooMuch."""
        self.templates += 1
        if self.templates > MOST_TEMPLATES:
            text = f"more than {MOST_TEMPLATES} templates are included, one in another"
            raise TooMuch(f"{text}: does one include itself?")
        self.charge(work)


def size_of(value: object) -> int:
    """Return the characters and items of a value, as far as MOST_TEXT: what text of it would have.

    A list that is in another one twice counts twice.
    """
    size, rest = 0, [value]
    while rest and size <= MOST_TEXT:
        one = rest.pop()
        size += 1
        if isinstance(one, (str, bytes)):
            size += len(one)
        elif isinstance(one, int):
            size += one.bit_length() // 3
        elif isinstance(one, dict):
            rest += [*one, *one.values()]
        elif isinstance(one, (list, tuple, set, frozenset)):
            rest += one
    return size


def small(value: object) -> object:
    """Return a value that was made. Raises TooMuch where it is too large, or differs each time."""
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        raise TooMuch(f"a number of {value.bit_length()} bits is too large")
    if (size := size_of(value)) > MOST_TEXT:
        raise TooMuch(_large(size))
    if isinstance(value, str) and " at 0x" in value and _ADDRESS.search(value):
        shown = _ADDRESS.search(value[:10_000])
        what = shown[0].partition(" at 0x")[0] + " …>" if shown else "it"
        raise TooMuch(f"`{what}` has an address in its text, which is another one each time")
    return value


def text_of(value: object) -> str:
    """Return the text of a value. Raises TooMuch as `small` does."""
    if isinstance(value, str):
        return value
    small(value)
    return str(small(str(value)))


def allow(size: int) -> None:
    """Raise TooMuch for a text or list of this size, before it is made."""
    if size > MOST_TEXT:
        raise TooMuch(_large(size))


def _large(size: int) -> str:
    number = size if size < 10**15 else "very many"
    return f"a text or list of {number} characters or items is too large; {MOST_TEXT} are allowed"


def check_operation(operator: str, left: object, right: object) -> None:
    """Raise TooMuch for an operation whose result would be too large."""
    if operator == "+" and not isinstance(left, (int, float)):
        allow(size_of(left) + size_of(right))
    elif operator == "*":
        _check_product(left, right)
    elif operator == "**" and isinstance(left, int) and isinstance(right, int):
        if abs(left) > 1 and right * left.bit_length() > MOST_BITS:
            raise TooMuch(f"a power of more than {MOST_BITS} bits is too large")
    elif operator == "%" and isinstance(left, str):
        check_format(left, right)


def _check_product(left: object, right: object) -> None:
    for many, times in ((left, right), (right, left)):
        if isinstance(many, (str, bytes, list, tuple)) and isinstance(times, int):
            allow(size_of(many) * max(times, 0))
    if isinstance(left, int) and isinstance(right, int):
        bits = left.bit_length() + right.bit_length()
        if bits > MOST_BITS:
            raise TooMuch(f"a number of {bits} bits is too large")


def check_format(text: str, values: object) -> None:
    """Raise TooMuch for a `%` of a text whose result would be too large."""
    fields = [found[2] for found in _FIELD.finditer(text)]
    for field in fields:
        if "*" in field or any(int(n) > MOST_WIDTH for n in re.findall("[0-9]{1,9}", field)):
            raise TooMuch(f"a field of a format is at most {MOST_WIDTH} wide, and says so itself")
    allow(len(text) + len(fields) * size_of(values))


def check_filter(
    name: str, value: object, args: tuple[object, ...], named: Mapping[str, object]
) -> None:
    """Raise TooMuch for a filter whose result would be too large."""
    others = [*args, *named.values()]
    widths = [abs(one) for one in others if isinstance(one, int)]
    words = [len(one) for one in others if isinstance(one, str)]
    if name in _WIDE and max(widths, default=0) > MOST_TEXT:
        raise TooMuch(_large(max(widths)))
    if name in ("center", "truncate", "batch", "slice"):
        allow(size_of(value) + max(widths, default=0) * max(1, *words, 1))
    elif name == "indent":
        allow(size_of(value) + str(value).count("\n") * max([1, *widths, *words]))
    elif name == "replace" and others:
        allow(size_of(value) + str(value).count(str(others[0])) * max([1, *words]))
    elif name == "wordwrap":
        allow(size_of(value) * max([2, *words]))
    elif name == "tojson":
        allow(size_of(value) * 12 * (1 + max(widths, default=0)))
    elif name == "format":
        check_format(str(value), others)
    elif name == "join":
        allow(size_of(value) + size_of(others) * (len(value) if isinstance(value, list) else 1))


_WIDE = ("center", "truncate", "batch", "slice", "indent", "wordwrap", "tojson", "round")


def items_of(values: object) -> list[object]:
    """List what an iterator gives. Raises TooMuch where that is too much, TypeError for others."""
    if not isinstance(values, Iterable):
        raise TypeError(f"{type(values).__name__} cannot be joined")
    items = list(islice(values, MOST_TEXT + 1))
    allow(len(items))
    return items
