"""Open the SQLite file of the journal, make its tables, and upgrade files of older versions."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from imagegen.events.waiting import waiting_for
from imagegen.journal.trouble import explained, from_newer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BUSY_SECONDS = 30.0
"""Seconds that a run waits to write; a write takes milliseconds, where the disk is not busy."""

BEGIN_SECONDS = 8.0
"""Seconds that a run waits for its first write: nothing is lost where it does not begin."""

READ_SECONDS = 4.0
"""Seconds that a reader waits: it has to wait only where somebody has locked the whole file."""

_SCHEMA = """
CREATE TABLE runs (
  id INTEGER PRIMARY KEY, verb TEXT NOT NULL, argv TEXT NOT NULL,
  started TEXT NOT NULL, ended TEXT, exit_code INTEGER
);
CREATE TABLE builds (
  id INTEGER PRIMARY KEY, run_id INTEGER NOT NULL REFERENCES runs, at TEXT NOT NULL,
  cell_id TEXT NOT NULL, tag TEXT NOT NULL, recipe TEXT NOT NULL, outcome TEXT NOT NULL,
  image_id TEXT NOT NULL, seconds REAL NOT NULL, size_bytes INTEGER NOT NULL,
  cause TEXT NOT NULL, detail TEXT NOT NULL, log TEXT NOT NULL
);
CREATE TABLE steps (
  build_id INTEGER NOT NULL REFERENCES builds, position INTEGER NOT NULL, name TEXT NOT NULL,
  stage TEXT NOT NULL, seconds REAL NOT NULL, cached INTEGER NOT NULL,
  PRIMARY KEY (build_id, position)
);
CREATE TABLE validations (
  id INTEGER PRIMARY KEY, run_id INTEGER NOT NULL REFERENCES runs, at TEXT NOT NULL,
  image_id TEXT NOT NULL, tag TEXT NOT NULL, tier TEXT NOT NULL, passed INTEGER NOT NULL,
  counts TEXT NOT NULL, seconds REAL NOT NULL, report TEXT NOT NULL
);
CREATE INDEX validations_of_image ON validations (image_id);
CREATE TABLE publications (
  id INTEGER PRIMARY KEY, run_id INTEGER NOT NULL REFERENCES runs, at TEXT NOT NULL,
  image_id TEXT NOT NULL, reference TEXT NOT NULL, digest TEXT NOT NULL, previous TEXT NOT NULL
);
CREATE INDEX publications_of_reference ON publications (reference);
"""

_ADDITIONS = """
ALTER TABLE runs ADD COLUMN cwd TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN cells TEXT NOT NULL DEFAULT '[]';
ALTER TABLE steps ADD COLUMN component TEXT NOT NULL DEFAULT '';
ALTER TABLE steps ADD COLUMN release TEXT NOT NULL DEFAULT '';
ALTER TABLE steps ADD COLUMN size_bytes INTEGER NOT NULL DEFAULT 0;
CREATE INDEX builds_of_run ON builds (run_id);
"""

_VERSIONS = (_SCHEMA, _ADDITIONS)
"""The statements that upgrade a file from each version to the next; an empty file is version 0."""

SCHEMA_VERSION = len(_VERSIONS)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other processes out of this block for the same folder; it ends with the process, too.

    Raises sqlite3.OperationalError, as SQLite does, where another one stays in it.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        deadline = time.monotonic() + BEGIN_SECONDS
        while not _taken(descriptor):
            if time.monotonic() > deadline:
                raise sqlite3.OperationalError("its folder is locked")
            time.sleep(0.05)
        yield
    finally:
        os.close(descriptor)


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def make_tables(db: sqlite3.Connection, version: int) -> None:
    """Make the tables that a file of this version lacks; 0 is a file without tables."""
    for statements in _VERSIONS[version:]:
        for statement in filter(str.strip, statements.split(";")):
            db.execute(statement)
    db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


class JournalFile:
    """Open a connection for each use; all that one use writes is stored, or nothing."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def _use(
        self, begin: str = "BEGIN", limit: float = READ_SECONDS
    ) -> Iterator[sqlite3.Connection]:
        """Open a transaction, which is committed at the end and rolled back on an error.

        It waits `limit` seconds for other processes. Raises ConfigError with the reason, also for
        rows that cannot be understood.
        """
        try:
            with (
                waiting_for(f"journal `{self.path}`, which another process has locked", limit),
                closing(sqlite3.connect(self.path, timeout=limit, isolation_level=None)) as db,
            ):
                db.execute(begin)
                yield db
                db.execute("COMMIT")
        except (OSError, sqlite3.Error, ValueError, TypeError) as error:
            raise explained(self.path, error) from error

    def prepare(self) -> None:
        """Make the file and its tables, where they do not exist yet."""
        if self._is_ready():
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # SQLite does not wait for other processes when it changes this mode, so only one may do
            # it.
            with (
                waiting_for(f"folder `{self.path.parent}`, which is locked", BEGIN_SECONDS),
                _alone(self.path.parent),
                closing(sqlite3.connect(self.path, timeout=READ_SECONDS)) as db,
            ):
                db.execute("PRAGMA journal_mode = WAL")
        except (OSError, sqlite3.Error) as error:
            raise explained(self.path, error) from error
        with self._use("BEGIN IMMEDIATE", BEGIN_SECONDS) as db:
            (version,) = db.execute("PRAGMA user_version").fetchone()
            if version > SCHEMA_VERSION:
                raise from_newer(self.path, version, SCHEMA_VERSION)
            make_tables(db, version)

    def _is_ready(self) -> bool:
        """Return whether the file has all tables, so that nothing has to be made or locked."""
        if not self.path.is_file() or not self.path.stat().st_size:
            return False
        with self._use() as db:
            (version,) = db.execute("PRAGMA user_version").fetchone()
        return bool(version == SCHEMA_VERSION)

    def _insert(self, db: sqlite3.Connection, table: str, **values: object) -> int:
        names, marks = ", ".join(values), ", ".join("?" * len(values))
        sql = f"INSERT INTO {table} ({names}) VALUES ({marks})"
        row = db.execute(sql, tuple(map(as_text, values.values()))).lastrowid
        assert row is not None
        return row


def as_text(value: object) -> object:
    """Write bytes of a path that are no text as `\\xff`: a table has text only."""
    if isinstance(value, str):
        return value.encode(errors="surrogateescape").decode(errors="backslashreplace")
    return value
