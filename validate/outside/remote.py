"""Run commands in a container or on a machine through testinfra, with a time limit on each."""

import copy
import re
import shlex
from typing import IO, Any, List, NamedTuple, Optional

import testinfra

from validate.process import run
from validate.unnamed import unnamed_file

EXEC = re.compile(r"^((?:docker|podman|kubectl)\b.*? exec) ")
"""Commands of testinfra that pass stdin on only with the option `-i`."""
COMMAND_SECONDS = 120.0


class RemoteError(Exception):
    """Signal that a machine cannot be reached or used. The message is written for a user."""


class RemoteResult(NamedTuple):
    """Hold how a command ended on the other side."""

    code: int
    out: str
    err: str

    @property
    def ok(self) -> bool:
        """Return whether the command ended with exit code 0."""
        return self.code == 0

    def last(self) -> str:
        """Return the last line that the command printed."""
        lines = [line for line in (self.out + "\n" + self.err).splitlines() if line.strip()]
        return lines[-1] if lines else "it said nothing"


class Remote:
    """Connect to one of `--hosts`. Raises RemoteError if there is no such host."""

    def __init__(self, spec: str) -> None:
        self.spec = spec
        self._seconds = COMMAND_SECONDS
        self._stdin: Optional[IO[bytes]] = None
        try:
            # A copy, because testinfra keeps its backends and returns them to later callers.
            self._backend = copy.copy(testinfra.get_host(spec).backend)
        except (RuntimeError, ValueError, ImportError, AttributeError, TypeError) as error:
            if "://" not in spec:
                raise RemoteError("`{}` does not say how it is reached".format(spec)) from None
            raise RemoteError("`{}` is no host: {}".format(spec, error)) from None
        if not hasattr(self._backend, "run_local"):
            raise RemoteError("`{}`: testinfra reaches it by no command".format(spec))
        self._backend._encoding = (
            "utf-8"  # else testinfra asks a Python there, which may be missing
        )
        self._backend.run_local = self._bounded

    def _bounded(self, command: str, *arguments: str) -> Any:
        """Run a command with a time limit, in place of testinfra's method, which has none."""
        backend = self._backend
        line = backend.quote(command, *arguments)
        line = EXEC.sub(r"\1 -i ", line, 1) if self._stdin else line
        result = run(["sh", "-c", line], self._seconds, stdin=self._stdin)
        code = 124 if result.timed_out else result.code
        out, err = result.out.encode("utf-8"), result.err.encode("utf-8")
        return backend.result(code, line.encode("utf-8"), out, err)

    def run(self, script: str, seconds: float = COMMAND_SECONDS) -> RemoteResult:
        """Run a shell script on the other side; `seconds` is its time limit."""
        self._seconds = seconds
        try:
            result = self._backend.run(script)
        except RuntimeError as error:  # testinfra raises it for 255, ssh's own failure
            result = error.args[0]
        return RemoteResult(result.rc, result.stdout, result.stderr)

    def run_or_raise(self, script: str, seconds: float = COMMAND_SECONDS) -> str:
        """Run a shell script and return what it printed. Raises RemoteError if it fails."""
        result = self.run(script, seconds)
        if not result.ok:
            text = "`{}`: `{}` ended with exit code {}: {}"
            raise RemoteError(text.format(self.spec, script[:60], result.code, result.last()))
        return result.out.strip()

    def put(self, path: str, data: bytes) -> None:
        """Write a file on the other side. Raises RemoteError if that fails."""
        with unnamed_file() as file:
            file.write(data)
            file.seek(0)
            self._stdin = file
            try:
                self.run_or_raise("cat > {}".format(shlex.quote(path)))
            finally:
                self._stdin = None


def joined(words: List[str]) -> str:
    """Join words into a shell command, quoted where needed."""
    return " ".join(shlex.quote(word) for word in words)
