"""Read the journal where a verb only looks: nothing is written, made or locked.

A verb that can do without the journal uses `from_journal`: a journal that cannot be read is told,
and counts as an empty one.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

from imagegen.config.state import state_folder
from imagegen.errors import ConfigError
from imagegen.journal.database import READ_SECONDS, SCHEMA_VERSION, make_tables
from imagegen.journal.journal import Journal
from imagegen.journal.trouble import explained, from_newer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

T = TypeVar("T")

_NO_OTHER_FILES = re.compile("unable to open|disk I/O error")
"""The errors of SQLite where it cannot make the files beside the journal that locks are kept in."""


class _Reader(Journal):
    @contextmanager
    def _use(
        self, begin: str = "BEGIN", limit: float = READ_SECONDS
    ) -> Iterator[sqlite3.Connection]:
        del begin, limit
        try:
            with closing(_opened(self.path)) as db:
                yield db
        except (OSError, sqlite3.Error, ValueError, TypeError) as error:
            raise explained(self.path, error) from error


def _opened(path: Path) -> sqlite3.Connection:
    """Open a journal for reading, or an empty one in memory where there is no file yet.

    In a folder that nobody can write to, and on a full disk, SQLite reads a file in this mode only
    as one that nobody changes. Raises sqlite3.Error, and ConfigError for one of a newer imagegen.
    """
    if not path.exists() or not path.stat().st_size:
        return _empty()
    for mode in ("mode=ro", "mode=ro&immutable=1"):
        db = sqlite3.connect(f"file:{quote(bytes(path))}?{mode}", timeout=READ_SECONDS, uri=True)
        try:
            (version,) = db.execute("PRAGMA user_version").fetchone()
            (tables,) = db.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError as error:
            db.close()
            if mode.endswith("1") or not _NO_OTHER_FILES.search(str(error)):
                raise
            continue
        except sqlite3.Error:
            db.close()
            raise
        if version == SCHEMA_VERSION:
            return db
        db.close()
        if version > SCHEMA_VERSION:
            raise from_newer(path, version, SCHEMA_VERSION)
        if not version and tables:
            raise sqlite3.DatabaseError("it is not a database of imagegen")
        Journal(path).prepare()  # the tables of an older imagegen are upgraded first
        return _opened(path)
    raise AssertionError(path)


def _empty() -> sqlite3.Connection:
    db = sqlite3.connect(":memory:", isolation_level=None)
    make_tables(db, 0)
    return db


class _Nothing(_Reader):
    @contextmanager
    def _use(
        self, begin: str = "BEGIN", limit: float = READ_SECONDS
    ) -> Iterator[sqlite3.Connection]:
        del begin, limit
        with closing(_empty()) as db:
            yield db


def reading_journal(path: Path | None = None) -> Journal:
    """Return the journal for reading only; its methods raise ConfigError where that fails."""
    return _Reader(path or state_folder() / "journal.db")


def from_journal(read: Callable[[Journal], T], note: Callable[[str], None]) -> T:
    """Return what `read` reads from the journal, or from an empty one if it cannot be read.

    `note` gets the reason then.
    """
    try:
        return read(reading_journal())
    except ConfigError as error:
        (problem,) = error.problems
        note(f"warning: without the journal: {problem.text} ({problem.hint})")
        return read(_Nothing(state_folder() / "journal.db"))
