"""A fact about an image as tools for testing images know them: a command, a file, a program, the
environment. `checks` are those of `validate` that it stands for, alone or with other facts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

ANYTHING = (r"\S",)
"""As `unwanted`: a command that lists what is wrong prints nothing."""


@dataclass(frozen=True)
class Command:
    """A shell line that ends well; each of `wants` is found in what it prints, none of `unwanted`:
    patterns that Python and Go read alike, `^` and `$` being ends of lines.

    No shell variables: container-structure-test takes them out of a line.
    """

    checks: tuple[str, ...]
    line: str
    wants: tuple[str, ...] = ()
    unwanted: tuple[str, ...] = ()


@dataclass(frozen=True)
class File:
    """A file that is there, or is not; with patterns in what it says, or its permission bits."""

    checks: tuple[str, ...]
    path: str
    says: tuple[str, ...] = ()
    mode: int | None = None
    folder: bool = False
    there: bool = True


@dataclass(frozen=True)
class Program:
    """One that a shell finds."""

    checks: tuple[str, ...]
    path: str


@dataclass(frozen=True)
class Environment:
    """Variables as processes of a container have them."""

    checks: tuple[str, ...]
    values: Mapping[str, str]
    unset: tuple[str, ...]


Fact = Command | File | Program | Environment
