"""Read YAML files as documents: plain data with the line of each key.

YAML misreads versions (`cuda: 11.10` is the number 11.1, `rdma: no` is false), so scalars keep
their source text; only `true`, `false` and null have another type.
"""

from __future__ import annotations

import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from imagegen.config.document import Document, near
from imagegen.config.payload import there
from imagegen.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MOST_BYTES = 4_000_000
"""The most bytes of a file of the payload: real ones have a tenth of it."""


def load(path: Path, shown: str, *, as_text: bool = True) -> Document[Mapping[str, object]]:
    """Read the mapping in a YAML file.

    With `as_text` off, whole and decimal numbers become numbers. Raises ConfigError with every
    problem of the file that can be seen without its schema.
    """
    from imagegen.config.yaml_nodes import parse

    check_size(path, shown)
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(_unreadable(error, path, shown)) from None
    return parse(text, shown, as_text)


def check_size(path: Path, shown: str) -> None:
    """Raise ConfigError for what would be read without end, or for long: a pipe, a huge file."""
    with suppress(OSError):  # reading it tells why
        found = path.stat()
        if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
            hint = "name a file that is kept on a disk"
            raise ConfigError(Problem("is a pipe or a device, not a file", shown, hint=hint))
        if found.st_size > MOST_BYTES:
            text = f"has {found.st_size} bytes, {MOST_BYTES} are allowed"
            raise ConfigError(Problem(text, shown, hint="split it, or name another file"))


def _unreadable(error: OSError | UnicodeDecodeError, path: Path, shown: str) -> Problem:
    if isinstance(error, UnicodeDecodeError):
        line = error.object[: error.start].count(b"\n") + 1
        return Problem("is not UTF-8", shown, line, hint="save the file as UTF-8")
    if isinstance(error, IsADirectoryError):
        return Problem("is a directory, not a file", shown, hint="name a file in it")
    if not isinstance(error, FileNotFoundError):
        text = f"cannot be read: {(error.strerror or str(error)).lower()}"
        return Problem(text, shown, hint="make it readable for this user")
    return missing(path, shown)


def missing(path: Path, shown: str) -> Problem:
    """Say that a file is not there, and which are beside it."""
    folder = path.parent
    names = sorted(p.name for p in folder.glob(f"*{path.suffix}")) if there(folder) else []
    evidence = f"`{folder}` has: {', '.join(names) or 'no such files'}"
    hint = near(path.name, names, "correct the path")
    return Problem("no such file", shown, evidence=(evidence,), hint=hint)
