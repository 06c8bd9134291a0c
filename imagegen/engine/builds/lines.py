"""Cut a stream of bytes into the lines that a terminal would show in the end."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Lines:
    """One stream: feed it pieces cut anywhere, also inside a character; take whole lines."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._partial = ""

    def feed(self, data: bytes) -> Iterator[str]:
        """The lines that this piece completes, without line ends."""
        *whole, self._partial = (self._partial + self._decoder.decode(data)).split("\n")
        yield from (_settled(line) for line in whole)

    def rest(self) -> Iterator[str]:
        """What came without a line end, once."""
        line, self._partial = _settled(self._partial), ""
        if line:
            yield line


def _settled(line: str) -> str:
    """What is left of a line that was drawn over with `\\r`, as progress bars do."""
    return line.rstrip("\r").rpartition("\r")[2]
