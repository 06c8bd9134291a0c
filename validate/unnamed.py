"""Open files without names, for what commands print: nothing of them can be left behind."""

import os
import tempfile
from typing import IO

IN_MEMORY = "/dev/shm"


def unnamed_file() -> IO[bytes]:
    """Open an empty file in memory, or in a folder for temporary files where there is no such call.

    It works in a container without a folder that can be written: memfd_create(2) needs none. Raises
    OSError if no file can be opened at all.
    """
    make = getattr(os, "memfd_create", None)  # from Python 3.8 on
    if make is not None:
        try:
            return os.fdopen(make("imagegen-validate"), "w+b")
        except OSError:
            pass
    try:
        return tempfile.TemporaryFile()
    except OSError:
        return tempfile.TemporaryFile(dir=IN_MEMORY)
