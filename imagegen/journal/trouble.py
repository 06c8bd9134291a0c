"""Explain why the journal cannot be used: each reason has its own hint."""

from __future__ import annotations

import errno
import re
import shlex
import shutil
import sqlite3
from typing import TYPE_CHECKING

from imagegen.errors import ConfigError, Problem

if TYPE_CHECKING:
    from pathlib import Path

ELSEWHERE = "or set `IMAGEGEN_STATE` to another folder"
LEAST_BYTES = 200_000
"""SQLite names no reason where it cannot make its other files; less room than this is one."""

_LOCKED = re.compile(r"\blocked\b")
_FULL = re.compile(r"disk is full")
_DAMAGED = re.compile(r"not a database|malformed|no such (table|column)|already exists|unsupported")
_FULL_DISK = (errno.ENOSPC, errno.EDQUOT)
_NO_FOLDER = (errno.EEXIST, errno.ENOTDIR)


def explained(path: Path, error: Exception) -> ConfigError:
    """Make the error for a journal that the system, or SQLite, refused."""
    number, reason = getattr(error, "errno", None), str(error)
    if _LOCKED.search(reason):
        return _error(
            f"journal `{path}` is locked by another process",
            reason,
            f"wait for that process, find it with `fuser {shlex.quote(str(path))}`, {ELSEWHERE}",
        )
    if number in _FULL_DISK or _FULL.search(reason) or _has_no_room(path, error):
        return _error(
            f"there is no room for journal `{path}`",
            reason,
            f"make room on the disk of `{path.parent}`, {ELSEWHERE}",
        )
    if number in _NO_FOLDER:
        text = f"the journal cannot be in `{path.parent}`: it, or a parent of it, is no folder"
        return _error(text, reason, f"move that file away, {ELSEWHERE}")
    if _DAMAGED.search(reason) or not isinstance(error, (OSError, sqlite3.OperationalError)):
        quoted = shlex.quote(str(path))
        return _error(
            f"journal `{path}` is damaged",
            reason,
            f"`mv {quoted} {quoted}.damaged`; the next run begins a new one",
        )
    return _error(
        f"journal `{path}` cannot be opened for writing, or not at all",
        reason,
        f"give this user the right to write to `{path.parent}`, {ELSEWHERE}",
    )


def from_newer(path: Path, version: int, known: int) -> ConfigError:
    """Make the error for a journal that a newer imagegen has written."""
    return _error(
        f"journal `{path}` is of a newer imagegen",
        f"its version is {version}, this imagegen knows {known}",
        f"update imagegen, {ELSEWHERE}",
    )


def _error(text: str, reason: str, hint: str) -> ConfigError:
    return ConfigError(Problem(text, evidence=(reason,), hint=hint))


def _has_no_room(path: Path, error: Exception) -> bool:
    if not isinstance(error, sqlite3.OperationalError):
        return False
    try:
        return shutil.disk_usage(path.parent).free < LEAST_BYTES
    except OSError:
        return False
