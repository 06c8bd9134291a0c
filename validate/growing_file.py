"""Report the lines of a file that another process writes."""

import os
from typing import IO, Callable

OnLine = Callable[[str], None]


class GrowingFile:
    """Call `on_line` with the lines of a growing file."""

    def __init__(self, file: IO[bytes], on_line: OnLine) -> None:
        self._file = file
        self._on_line = on_line
        self._reported = 0

    def tell(self, last: bool) -> None:
        """Report all complete lines since the last call; with `last`, also an incomplete one."""
        size = os.fstat(self._file.fileno()).st_size - self._reported
        data = os.pread(self._file.fileno(), size, self._reported)
        end = len(data) if last else data.rfind(b"\n") + 1
        for line in data[:end].splitlines():
            self._on_line(line.decode("utf-8", "replace"))
        self._reported += end
