"""Open files without names, for what commands print: nothing of them can be left behind."""

import fcntl
import os
import tempfile
from typing import IO

IN_MEMORY = "/dev/shm"


def unnamed_file() -> IO[bytes]:
    """Open an empty file in memory, or in a folder for temporary files where there is no such call.

    All writes go to its end, so that processes which share it do not overwrite one another: for
    files of memfd_create(2) Linux does not lock the position between two writers. Raises OSError
    if no file can be opened at all.
    """
    file = _opened()
    fcntl.fcntl(file, fcntl.F_SETFL, fcntl.fcntl(file, fcntl.F_GETFL) | os.O_APPEND)
    return file


def _opened() -> IO[bytes]:
    """Open a file in memory, which needs no folder that can be written, else one in a folder."""
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
