"""Hold the data of a YAML file with the line of each key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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


Data_co = TypeVar("Data_co", bound=Mapping[str, object], covariant=True)


@dataclass(frozen=True)
class Document(Generic[Data_co]):
    """A YAML file: plain `data`, the `file` as shown to a user, and the line of every key path.

    Code that has checked the file against a schema knows the type of `data`, and casts to it.
    """

    data: Data_co
    file: str
    lines: Mapping[KeyPath, int] = field(default_factory=dict, repr=False)

    def line(self, path: Sequence[str | int]) -> int:
        """Return the line (from 1) of a key path, or of its nearest parent that is in the file."""
        known = tuple(path)
        while known and known not in self.lines:
            known = known[:-1]
        return self.lines.get(known, 1)


def dotted(path: Iterable[str | int]) -> str:
    """Write a key path as a user reads it: `include[0].os`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def near(word: str, known: Sequence[str], otherwise: str) -> str:
    """Write a hint that names the nearest of the known words, or the other hint if none is near."""
    found = get_close_matches(word, known, 1)
    return f"did you mean `{found[0]}`?" if found else otherwise


def kind_of(value: object) -> str:
    """Say what type a value has, in the words of TYPES."""
    kinds = {dict: "object", list: "array", bool: "boolean", str: "string", type(None): "null"}
    return TYPES[kinds.get(type(value), "number")]
