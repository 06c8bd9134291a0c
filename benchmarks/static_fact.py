"""Describe a fact about an image as test tools know it: command, file, program or environment.

`checks` are the checks of `validate` that a fact stands for, alone or with other facts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

ANYTHING = (r"\S",)
"""For `unwanted`: a command that lists what is wrong has to print nothing."""


@dataclass(frozen=True)
class Command:
    """Describe a shell line that has to succeed, and what it prints.

    Each of `wants` is found in the output and none of `unwanted`. The patterns mean the same in
    Python and Go; `^` and `$` are the ends of lines. There are no shell variables, because
    container-structure-test removes them from a line.
    """

    checks: tuple[str, ...]
    line: str
    wants: tuple[str, ...] = ()
    unwanted: tuple[str, ...] = ()


@dataclass(frozen=True)
class File:
    """Describe a file that exists or not, with patterns in its text, or its permission bits."""

    checks: tuple[str, ...]
    path: str
    says: tuple[str, ...] = ()
    mode: int | None = None
    folder: bool = False
    there: bool = True


@dataclass(frozen=True)
class Program:
    """Describe a program that a shell finds."""

    checks: tuple[str, ...]
    path: str


@dataclass(frozen=True)
class Environment:
    """Describe the variables that processes of a container have."""

    checks: tuple[str, ...]
    values: Mapping[str, str]
    unset: tuple[str, ...]


Fact = Command | File | Program | Environment
