"""Cut a stream of bytes into lines, as a terminal would show them in the end."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Lines:
    """Cut one stream into lines; its pieces may end anywhere, even inside a character."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._partial = ""

    def feed(self, data: bytes) -> Iterator[str]:
        """Take a piece, and return the lines that it completes, without line ends."""
        *whole, self._partial = (self._partial + self._decoder.decode(data)).split("\n")
        yield from (_settled(line) for line in whole)

    def rest(self) -> Iterator[str]:
        """Return the last line, if it came without a line end; it is returned only once."""
        line, self._partial = _settled(self._partial), ""
        if line:
            yield line


def _settled(line: str) -> str:
    """Return the visible part of a line in which `\\r` overwrites text, as progress bars do."""
    return line.rstrip("\r").rpartition("\r")[2]
