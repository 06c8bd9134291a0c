"""What imagegen did, in SQLite: runs, builds with their steps, validations, publications.

Each use opens a connection of its own, so threads and processes share one file; what one use
writes is there whole or not at all, whenever the process ends. Times are UTC in ISO 8601.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections import defaultdict
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from imagegen.errors import ConfigError
from imagegen.model import BuildRecord, Publication, ValidationRecord

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

BUSY_SECONDS = 30.0
"""How long a use waits for another that writes; a write takes milliseconds."""

SCHEMA_VERSION = 1

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


@dataclass(frozen=True)
class Run:
    """One run of a verb. `exit_code` is None while it runs, and for good if it was killed.

    `outcomes` counts what it did: builds by outcome, `validated`, `invalid`, `published`.
    """

    id: int
    verb: str
    argv: tuple[str, ...]
    started: str
    ended: str
    exit_code: int | None
    outcomes: Mapping[str, int]


def state_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Where imagegen keeps its state: `$IMAGEGEN_STATE`, or as the XDG base directories say.

    Raises ConfigError for a user without a home directory.
    """
    environ = os.environ if environ is None else environ
    if environ.get("IMAGEGEN_STATE"):
        return Path(environ["IMAGEGEN_STATE"])
    xdg = environ.get("XDG_STATE_HOME", "")
    if xdg.startswith("/"):  # the XDG specification has relative paths ignored
        return Path(xdg) / "imagegen"
    try:
        return Path(environ.get("HOME") or Path.home()) / ".local" / "state" / "imagegen"
    except RuntimeError:
        text = "this user has no home directory to keep the journal in"
        raise ConfigError.of(text, hint="set `IMAGEGEN_STATE` to a directory") from None


def open_journal(path: Path | None = None) -> Journal:
    """The journal at a path, `journal.db` in the state folder by default; made if it is not there.

    Raises ConfigError if it cannot be made or read, or a newer imagegen has written it.
    """
    journal = Journal(path or state_folder() / "journal.db")
    journal.prepare()
    return journal


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


class Journal:
    """Writes and reads the records of `model`. Every method may raise ConfigError: disk, rights."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def _use(self, begin: str = "BEGIN") -> Iterator[sqlite3.Connection]:
        """A connection in a transaction that is committed at the end, rolled back on an error."""
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
        """Make the file and its tables, where they are not there yet."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.path, timeout=BUSY_SECONDS)) as db:
                db.execute("PRAGMA journal_mode = WAL")
        except (OSError, sqlite3.Error) as error:
            raise self._refusal(str(error)) from error
        with self._use("BEGIN IMMEDIATE") as db:
            (version,) = db.execute("PRAGMA user_version").fetchone()
            if version > SCHEMA_VERSION:
                reason = f"a newer imagegen has written it (version {version})"
                raise self._refusal(reason)
            if version == 0:
                for statement in filter(str.strip, _SCHEMA.split(";")):
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def _insert(self, db: sqlite3.Connection, table: str, **values: object) -> int:
        names, marks = ", ".join(values), ", ".join("?" * len(values))
        sql = f"INSERT INTO {table} ({names}) VALUES ({marks})"
        row = db.execute(sql, tuple(values.values())).lastrowid
        assert row is not None
        return row

    def start_run(self, verb: str, argv: Sequence[str]) -> int:
        """A run begins; its id is for the records that follow."""
        with self._use("BEGIN IMMEDIATE") as db:
            return self._insert(db, "runs", verb=verb, argv=json.dumps(list(argv)), started=_now())

    def end_run(self, run_id: int, exit_code: int) -> None:
        with self._use("BEGIN IMMEDIATE") as db:
            sql = "UPDATE runs SET ended = ?, exit_code = ? WHERE id = ?"
            db.execute(sql, (_now(), exit_code, run_id))

    def add_build(self, run_id: int, record: BuildRecord) -> None:
        with self._use("BEGIN IMMEDIATE") as db:
            build = self._insert(
                db,
                "builds",
                run_id=run_id,
                at=_now(),
                cell_id=record.cell_id,
                tag=record.tag,
                recipe=record.recipe,
                outcome=record.outcome,
                image_id=record.image_id,
                seconds=record.seconds,
                size_bytes=record.size_bytes,
                cause=record.cause,
                detail=json.dumps(record.detail),
                log=record.log,
            )
            rows = [
                (build, position, step.name, step.stage, step.seconds, step.cached)
                for position, step in enumerate(record.steps)
            ]
            db.executemany("INSERT INTO steps VALUES (?, ?, ?, ?, ?, ?)", rows)

    def add_validation(self, run_id: int, record: ValidationRecord) -> None:
        with self._use("BEGIN IMMEDIATE") as db:
            self._insert(
                db,
                "validations",
                run_id=run_id,
                at=_now(),
                image_id=record.image_id,
                tag=record.tag,
                tier=record.tier,
                passed=record.passed,
                counts=json.dumps(dict(record.counts)),
                seconds=record.seconds,
                report=json.dumps(dict(record.report)),
            )

    def validations(self, image_id: str) -> tuple[ValidationRecord, ...]:
        """All validations of exactly this image, the latest first."""
        sql = (
            "SELECT image_id, tag, tier, passed, counts, seconds, report FROM validations"
            " WHERE image_id = ? ORDER BY id DESC"
        )
        with self._use() as db:
            return tuple(
                ValidationRecord(
                    image, tag, tier, bool(passed), json.loads(counts), seconds, json.loads(report)
                )
                for image, tag, tier, passed, counts, seconds, report in db.execute(
                    sql, (image_id,)
                )
            )

    def validation_of(self, image_id: str) -> ValidationRecord | None:
        """The record that decides about an image: the latest full one, else the latest static one.

        A partial one (some suites only) decides nothing.
        """
        records = self.validations(image_id)
        ranked = (one for tier in ("full", "static") for one in records if one.tier == tier)
        return next(ranked, None)

    def add_publication(self, run_id: int, record: Publication) -> None:
        with self._use("BEGIN IMMEDIATE") as db:
            self._insert(
                db,
                "publications",
                run_id=run_id,
                at=_now(),
                image_id=record.image_id,
                reference=record.reference,
                digest=record.digest,
                previous=record.previous,
            )

    def last_publication(self, reference: str) -> Publication | None:
        """What was last published under a full reference, such as `host/namespace/cpu:tag`."""
        sql = (
            "SELECT image_id, reference, digest, previous FROM publications"
            " WHERE reference = ? ORDER BY id DESC LIMIT 1"
        )
        with self._use() as db:
            row = db.execute(sql, (reference,)).fetchone()
        return Publication(*row) if row else None

    def step_seconds(self) -> Mapping[str, float]:
        """Stage -> median seconds of its steps, over the builds that had none of them cached."""
        sql = (
            "SELECT stage, SUM(steps.seconds) FROM steps JOIN builds ON builds.id = build_id"
            " WHERE outcome = 'built' AND name NOT LIKE '%] FROM %'"
            " GROUP BY build_id, stage HAVING MAX(cached) = 0"
        )
        found: defaultdict[str, list[float]] = defaultdict(list)
        with self._use() as db:
            for stage, seconds in db.execute(sql):
                found[stage].append(seconds)
        return {stage: median(every) for stage, every in found.items()}

    def history(self, limit: int = 20) -> tuple[Run, ...]:
        """The last runs, the latest first."""
        sql = "SELECT id, verb, argv, started, ended, exit_code FROM runs ORDER BY id DESC LIMIT ?"
        with self._use() as db:
            return tuple(
                Run(
                    run,
                    verb,
                    tuple(json.loads(argv)),
                    started,
                    ended or "",
                    code,
                    _outcomes(db, run),
                )
                for run, verb, argv, started, ended, code in db.execute(sql, (limit,)).fetchall()
            )


def _outcomes(db: sqlite3.Connection, run_id: int) -> Mapping[str, int]:
    sql = (
        "SELECT outcome, COUNT(*) FROM builds WHERE run_id = :run GROUP BY outcome"
        " UNION ALL SELECT CASE passed WHEN 1 THEN 'validated' ELSE 'invalid' END, COUNT(*)"
        " FROM validations WHERE run_id = :run GROUP BY passed"
        " UNION ALL SELECT 'published', COUNT(*) FROM publications WHERE run_id = :run"
    )
    return {what: count for what, count in db.execute(sql, {"run": run_id}) if count}
