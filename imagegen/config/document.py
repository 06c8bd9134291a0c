"""A YAML file that was read: plain data that remembers on which line each key stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

KeyPath = tuple["str | int", ...]
TYPES = {
    "object": "a mapping",
    "array": "a list",
    "string": "text",
    "boolean": "`true` or `false`",
    "number": "a number",
    "null": "empty",
}
"""The types of JSON, in words for people."""


@dataclass(frozen=True)
class Document:
    """A YAML file: plain `data`, its `file` as shown to a user, and the line of every key path."""

    data: Any
    file: str
    lines: Mapping[KeyPath, int] = field(default_factory=dict, repr=False)

    def line(self, path: Sequence[str | int]) -> int:
        """1-based line of a key path, or of its nearest parent that stands in the file."""
        known = tuple(path)
        while known and known not in self.lines:
            known = known[:-1]
        return self.lines.get(known, 1)


def dotted(path: Iterable[str | int]) -> str:
    """A key path as a user reads it: `include[0].os`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def kind_of(value: object) -> str:
    """What a value is, in the words of TYPES."""
    kinds = {dict: "object", list: "array", bool: "boolean", str: "string", type(None): "null"}
    return TYPES[kinds.get(type(value), "number")]
