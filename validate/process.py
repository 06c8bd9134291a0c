"""Run a command with a time limit that holds: its whole process group is killed at the end of it."""

import os
import signal
import subprocess
from typing import Dict, List, NamedTuple, Optional

DEFAULT_SECONDS = 30.0
MISSING = 127


class Result(NamedTuple):
    """How a command ended. `code` is 127 where there is no such program."""

    code: int
    out: str
    err: str
    timed_out: bool

    @property
    def ok(self) -> bool:
        return self.code == 0 and not self.timed_out

    def tail(self, lines: int = 6) -> str:
        """The last lines of what it printed, errors last."""
        text = [line for line in (self.out + "\n" + self.err).splitlines() if line.strip()]
        return "\n".join(text[-lines:])


def run(
    argv: List[str],
    timeout: float = DEFAULT_SECONDS,
    env: Optional[Dict[str, str]] = None,
    stdin: str = "",
) -> Result:
    """Run a command; `timeout` in seconds. `env` replaces the environment where it is given."""
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            start_new_session=True,
        )
    except OSError as error:
        return Result(MISSING, "", "{}: {}".format(argv[0], error.strerror), False)
    try:
        out, err = process.communicate(stdin.encode(), timeout=timeout)
        return Result(process.returncode, _text(out), _text(err), False)
    except subprocess.TimeoutExpired:
        _kill(process)
        return Result(-signal.SIGKILL, "", "no answer within {:.0f} s".format(timeout), True)
    finally:
        _kill_group(process.pid)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _kill(process: "subprocess.Popen[bytes]") -> None:
    _kill_group(process.pid)
    try:
        process.communicate(timeout=2)
    except subprocess.TimeoutExpired:
        # A grandchild in a session of its own holds the pipes; it is not waited for.
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def _kill_group(pid: int) -> None:
    """Also after a normal end: what the command left behind in its group goes with it."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
