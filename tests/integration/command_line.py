"""Run the installed console script in a process of its own, as a user does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

SCRIPT = Path(sys.executable).with_name("imagegen")
SECONDS = 300


@dataclass(frozen=True)
class Ended:
    """Hold how a command ended. The output never contains a traceback."""

    code: int
    out: str
    err: str

    @property
    def documents(self) -> list[Any]:
        """Return the JSON documents of `--format json`, one from each line."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def result(self) -> Any:
        """Return the result of `--format json`: the last document that is no event and no error."""
        found = [d for d in self.documents if not isinstance(d, dict) or not _is_aside(d)]
        return found[-1]

    @property
    def text(self) -> str:
        return self.out + self.err


def _is_aside(document: Mapping[str, Any]) -> bool:
    return "event" in document or "errors" in document


HEED_INTERRUPTS = ("env", "--default-signal=INT")
"""As in a terminal: a job that a script runs in the background ignores interrupts by default."""


@dataclass(frozen=True)
class CommandLine:
    """Run `imagegen` in a folder with a state of its own; `environ` adds to the environment.

    `engine` is the address of the engine to use, if it is not the one that is found by default.
    """

    cwd: Path
    state: Path
    script: Path = SCRIPT
    engine: str = ""

    def environment(self, environ: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the environment of the test without variables that change the command."""
        kept = {k: v for k, v in os.environ.items() if k not in ("IMAGEGEN_DEBUG", "FORCE_COLOR")}
        host = {"DOCKER_HOST": self.engine} if self.engine else {}
        return kept | {"IMAGEGEN_STATE": str(self.state)} | host | dict(environ or {})

    def start(
        self, *arguments: str, environ: Mapping[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """Start the command in a process group of its own."""
        return subprocess.Popen(
            [*HEED_INTERRUPTS, str(self.script), *arguments],
            cwd=self.cwd,
            env=self.environment(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def __call__(
        self,
        *arguments: str,
        code: int = 0,
        environ: Mapping[str, str] | None = None,
        seconds: float = SECONDS,
    ) -> Ended:
        """Run the command to its end and check its exit code."""
        with self.start(*arguments, environ=environ) as process:
            return ended(process, code, seconds)


def ended(process: subprocess.Popen[str], code: int, seconds: float = SECONDS) -> Ended:
    """Wait for the end of a process and check its exit code."""
    try:
        out, err = process.communicate(timeout=seconds)
    except BaseException:
        process.kill()
        raise
    found = Ended(process.returncode, out, err)
    assert found.code == code, found.text
    assert "Traceback" not in found.text, found.text
    return found


def command_line_in(folder: Path, engine: str = "") -> CommandLine:
    """Return the command line in an empty folder, with its state beside the folder."""
    cwd = folder / "cwd"
    cwd.mkdir()
    return CommandLine(cwd, folder / "state", engine=engine)
