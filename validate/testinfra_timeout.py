"""Give testinfra's commands in this container a time limit.

Without it they have none, and they wait for any process that keeps their output open.
"""

import contextlib
import os
import signal
import subprocess
from typing import Any, Iterator

from testinfra.backend.base import BaseBackend

from validate.process import Result, noted
from validate.sessions import wait_for_end
from validate.unnamed import unnamed_file

SECONDS = 120.0
TIMED_OUT = 124


@contextlib.contextmanager
def limited_commands() -> Iterator[None]:
    """Limit the commands of every `host` fixture while the block lasts, also in a user's suites."""
    before = BaseBackend.run_local
    BaseBackend.run_local = run_local
    try:
        yield
    finally:
        BaseBackend.run_local = before


def run_local(backend: Any, command: str, *arguments: str) -> Any:
    """Replace `BaseBackend.run_local` with one that has a time limit.

    Output goes to files. When the command ends, for whatever reason, its process group is killed.
    """
    line = backend.encode(backend.quote(command, *arguments))
    with unnamed_file() as out, unnamed_file() as err:
        child = subprocess.Popen(
            ["sh", "-c", line],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        try:
            code = child.wait() if wait_for_end(child, SECONDS) else TIMED_OUT
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        for file in (out, err):
            file.seek(0)
        said = [file.read() for file in (out, err)]
    text = b"\n".join(said).decode("utf-8", "replace")
    noted(Result(["sh", "-c", command], code, "", text, code == TIMED_OUT))
    return backend.result(code, line, *said)
