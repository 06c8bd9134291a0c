"""Open the SQLite file of the journal, make its tables, and upgrade files of older versions."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from imagegen.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BUSY_SECONDS = 30.0
"""Seconds that a connection waits for another one that writes; a write takes milliseconds."""

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
    """Keep other processes out of this block for the same folder; it ends with the process, too."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


class JournalFile:
    """Open a connection for each use; all that one use writes is stored, or nothing."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def _use(self, begin: str = "BEGIN") -> Iterator[sqlite3.Connection]:
        """Open a transaction, which is committed at the end and rolled back on an error."""
        try:
            with closing(
                sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None)
            ) as db:
                db.execute(begin)
                yield db
                db.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._refusal(str(error)) from error

    def _refusal(self, reason: str) -> ConfigError:
        text = f"journal `{self.path}` cannot be used: {reason}"
        hint = "make it a readable and writable file, move it away, or set `IMAGEGEN_STATE`"
        error = ConfigError.of(text, hint=hint)
        assert isinstance(error, ConfigError)
        return error

    def prepare(self) -> None:
        """Make the file and its tables, where they do not exist yet."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # SQLite does not wait for other processes when it changes this mode, so only one may do
            # it.
            with _alone(self.path.parent), closing(sqlite3.connect(self.path)) as db:
                db.execute("PRAGMA journal_mode = WAL")
        except (OSError, sqlite3.Error) as error:
            raise self._refusal(str(error)) from error
        with self._use("BEGIN IMMEDIATE") as db:
            (version,) = db.execute("PRAGMA user_version").fetchone()
            if version > SCHEMA_VERSION:
                reason = f"a newer imagegen has written it (version {version})"
                raise self._refusal(reason)
            for statements in _VERSIONS[version:]:
                for statement in filter(str.strip, statements.split(";")):
                    db.execute(statement)
            db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def _insert(self, db: sqlite3.Connection, table: str, **values: object) -> int:
        names, marks = ", ".join(values), ", ".join("?" * len(values))
        sql = f"INSERT INTO {table} ({names}) VALUES ({marks})"
        row = db.execute(sql, tuple(values.values())).lastrowid
        assert row is not None
        return row
