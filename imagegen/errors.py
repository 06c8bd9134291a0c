"""Define every error that a user can meet, with the exit code that it ends in.

An error says what failed and where, then the evidence, then one action. Only `cli.main` catches
these errors, prints them and exits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong, as a user reads it.

    `file` and `line` say where it is: `file` is empty for a problem that is in no file, `line` is 0
    where it is not known. `key` is the key path inside the file, such as `axes.os`.
    """

    text: str
    file: str = ""
    line: int = 0
    key: str = ""
    evidence: tuple[str, ...] = ()
    hint: str = ""

    def __str__(self) -> str:
        where = self.file + (f":{self.line}" if self.file and self.line else "")
        head = ": ".join(part for part in (where, f"`{self.key}`" if self.key else "") if part)
        lines = [f"error: {head}: {self.text}" if head else f"error: {self.text}"]
        lines += [f"  {line}" for line in self.evidence]
        if self.hint:
            lines += ["", f"hint: {self.hint}"]
        return "\n".join(lines)


class ImagegenError(Exception):
    """The base class of all errors: it carries every problem that `cli.main` prints."""

    exit_code = 1

    def __init__(self, *problems: Problem) -> None:
        self.problems: tuple[Problem, ...] = problems
        super().__init__("\n\n".join(str(problem) for problem in problems))

    @property
    def lines(self) -> tuple[str, ...]:
        """Return all texts of all problems, one line each."""
        return tuple(
            line for one in self.problems for line in (one.text, *one.evidence, one.hint) if line
        )

    @classmethod
    def of(cls, text: str, *, evidence: Sequence[str] = (), hint: str = "") -> ImagegenError:
        """Make an error of one problem that is in no file."""
        return cls(Problem(text, evidence=tuple(evidence), hint=hint))


class ConfigError(ImagegenError):
    """A matrix, a catalog file, an option or an artefact file is wrong."""

    exit_code = 2


class NothingSelectedError(ImagegenError):
    """A selection matched no cell, or no matrix has that name."""

    exit_code = 3


class ResolutionError(ImagegenError):
    """No combination of releases satisfies the cell or the request."""

    exit_code = 4


class RenderError(ImagegenError):
    """A template failed, or asked for something that its release does not have."""

    exit_code = 5


class BuildError(ImagegenError):
    """At least one image was not built."""

    exit_code = 6


class ValidationError(ImagegenError):
    """At least one image failed `validate`, or `validate` could not run in it."""

    exit_code = 7


class PublishError(ImagegenError):
    """An image was refused for publication, or the registry refused it."""

    exit_code = 8


class EngineError(ImagegenError):
    """The container engine is missing, too old, or stopped answering."""

    exit_code = 9


class Interrupted(ImagegenError):
    """Ctrl-C, SIGTERM or SIGHUP: what ran on the engine was cancelled, and nothing was tagged."""

    exit_code = 130


EXIT_CODES: tuple[tuple[int, str], ...] = (
    (0, "all done"),
    (1, "a defect in imagegen itself"),
    (2, "bad usage or bad configuration, or a file or an output that the system refuses"),
    (3, "the selection matched nothing"),
    (4, "no combination of releases satisfies the request"),
    (5, "a template failed"),
    (6, "at least one image was not built"),
    (7, "at least one image failed validation"),
    (8, "publication was refused or failed"),
    (9, "the container engine is missing, too old, or died"),
    (130, "interrupted: Ctrl-C, SIGTERM, or SIGHUP"),
)
