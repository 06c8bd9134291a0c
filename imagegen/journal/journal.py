"""Keep what imagegen did in SQLite: runs, builds with their steps, validations, publications.

Each use opens a connection of its own, so threads and processes share one file. All that one use
writes is stored, or nothing, whenever the process ends. Times are UTC in ISO 8601.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from imagegen.config.state import state_folder
from imagegen.journal.costs import CostQueries
from imagegen.journal.database import BEGIN_SECONDS, BUSY_SECONDS
from imagegen.model.build import BuildRecord, StepRecord
from imagegen.model.publication import Publication
from imagegen.model.validation import ValidationRecord

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_PLAIN = tuple(f.name for f in fields(BuildRecord) if f.name not in ("steps", "detail"))
"""The fields of a build that its row has as they are."""


@dataclass(frozen=True)
class Run:
    """Describe one run of a verb.

    `exit_code` is None while it runs; it stays None if the run was killed. `outcomes` counts what
    it did: builds by outcome, `validated`, `invalid`, `published`. `cells` are those that it
    planned to bring up to date.
    """

    id: int
    verb: str
    argv: tuple[str, ...]
    started: str
    ended: str
    exit_code: int | None
    outcomes: Mapping[str, int]
    cwd: str = ""
    cells: tuple[str, ...] = ()


def open_journal(path: Path | None = None) -> Journal:
    """Open the journal at a path, `journal.db` in the state folder by default; make it if needed.

    Raises ConfigError if it cannot be made or read, or was written by a newer imagegen.
    """
    journal = Journal(path or state_folder() / "journal.db")
    journal.prepare()
    return journal


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


class Journal(CostQueries):
    """Write and read the records of `model`.

    Every method may raise ConfigError: disk, permissions.
    """

    def start_run(self, verb: str, argv: Sequence[str], cwd: str = "") -> int:
        """Write that a run begins; return its id, which the records of the run need."""
        row = {"verb": verb, "argv": json.dumps(list(argv)), "started": _now(), "cwd": cwd}
        with self._use("BEGIN IMMEDIATE", BEGIN_SECONDS) as db:
            return self._insert(db, "runs", **row)

    def plan_cells(self, run_id: int, cells: Sequence[str]) -> None:
        """Write which cells a run plans to bring up to date."""
        with self._use("BEGIN IMMEDIATE", BUSY_SECONDS) as db:
            db.execute("UPDATE runs SET cells = ? WHERE id = ?", (json.dumps(list(cells)), run_id))

    def end_run(self, run_id: int, exit_code: int) -> None:
        """Write that a run ended, and its exit code."""
        with self._use("BEGIN IMMEDIATE", BUSY_SECONDS) as db:
            sql = "UPDATE runs SET ended = ?, exit_code = ? WHERE id = ?"
            db.execute(sql, (_now(), exit_code, run_id))

    def add_build(self, run_id: int, record: BuildRecord) -> None:
        """Write the record of one build of a run."""
        self.add_builds(run_id, [record])

    def add_builds(self, run_id: int, records: Sequence[BuildRecord]) -> None:
        """Write the records of several builds of a run, all of them or none."""
        with self._use("BEGIN IMMEDIATE", BUSY_SECONDS) as db:
            for record in records:
                self._add_build(db, run_id, record)

    def _add_build(self, db: sqlite3.Connection, run_id: int, record: BuildRecord) -> None:
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
        for position, step in enumerate(record.steps):
            self._insert(db, "steps", build_id=build, position=position, **vars(step))

    def add_validation(self, run_id: int, record: ValidationRecord) -> None:
        """Write the record of one validation of a run."""
        with self._use("BEGIN IMMEDIATE", BUSY_SECONDS) as db:
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
        """List all validations of exactly this image, the latest first."""
        sql = (
            "SELECT image_id, tag, tier, passed, counts, seconds, report FROM validations"
            " WHERE image_id = ? ORDER BY id DESC"
        )
        with self._use() as db:
            rows = db.execute(sql, (image_id,)).fetchall()
            return tuple(
                ValidationRecord(
                    image, tag, tier, bool(passed), json.loads(counts), seconds, json.loads(report)
                )
                for image, tag, tier, passed, counts, seconds, report in rows
            )

    def validation_of(self, image_id: str) -> ValidationRecord | None:
        """Find the record that decides about an image: its latest full one, else static one.

        A partial one (some suites only) decides nothing.
        """
        records = self.validations(image_id)
        ranked = (one for tier in ("full", "static") for one in records if one.tier == tier)
        return next(ranked, None)

    def add_publication(self, run_id: int, record: Publication) -> None:
        """Write the record of one publication of a run."""
        with self._use("BEGIN IMMEDIATE", BUSY_SECONDS) as db:
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
        """Find the last publication under a full reference, such as `host/namespace/cpu:tag`."""
        sql = (
            "SELECT image_id, reference, digest, previous FROM publications"
            " WHERE reference = ? ORDER BY id DESC LIMIT 1"
        )
        with self._use() as db:
            row = db.execute(sql, (reference,)).fetchone()
        return Publication(*row) if row else None

    def published_images(self) -> set[str]:
        """Return the ids of all images that were ever published."""
        with self._use() as db:
            return {image for (image,) in db.execute("SELECT image_id FROM publications")}

    def last_run(self, verb: str) -> Run | None:
        """Find the latest run of a verb."""
        return next(iter(self._runs("WHERE verb = ?", verb, 1)), None)

    def done_cells(self, run_id: int) -> set[str]:
        """Return the cells of a run that were built or were up to date."""
        sql = "SELECT cell_id FROM builds WHERE run_id = ? AND outcome IN ('built', 'up-to-date')"
        with self._use() as db:
            return {cell for (cell,) in db.execute(sql, (run_id,))}

    def history(self, limit: int = 20) -> tuple[Run, ...]:
        """List the last runs, the latest first."""
        return self._runs("", None, limit)

    def builds(self, run_id: int) -> tuple[BuildRecord, ...]:
        """List the builds of a run with their steps, in the order in which they ended."""
        return self._builds("run_id = ? ORDER BY id", run_id)

    def last_good(self, cell_id: str) -> BuildRecord | None:
        """Find the last build of a cell that got its tag."""
        last = "cell_id = ? AND outcome = 'built' ORDER BY id DESC LIMIT 1"
        return next(iter(self._builds(last, cell_id)), None)

    def _builds(self, which: str, value: object) -> tuple[BuildRecord, ...]:
        sql = f"SELECT id, detail, {', '.join(_PLAIN)} FROM builds WHERE {which}"
        with self._use() as db:
            return tuple(
                BuildRecord(
                    **dict(zip(_PLAIN, plain, strict=True)),
                    steps=_steps(db, build),
                    detail=tuple(json.loads(detail)),
                )
                for build, detail, *plain in db.execute(sql, (value,)).fetchall()
            )

    def _runs(self, where: str, value: str | None, limit: int) -> tuple[Run, ...]:
        sql = (
            "SELECT id, verb, argv, started, ended, exit_code, cwd, cells FROM runs"
            f" {where} ORDER BY id DESC LIMIT ?"
        )
        given = (limit,) if value is None else (value, limit)
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
                    cwd,
                    tuple(json.loads(cells)),
                )
                for run, verb, argv, started, ended, code, cwd, cells in db.execute(
                    sql, given
                ).fetchall()
            )


def _steps(db: sqlite3.Connection, build_id: int) -> tuple[StepRecord, ...]:
    sql = (
        "SELECT name, stage, seconds, cached, component, release, size_bytes FROM steps"
        " WHERE build_id = ? ORDER BY position"
    )
    return tuple(
        StepRecord(name, stage, seconds, bool(cached), component, release, size)
        for name, stage, seconds, cached, component, release, size in db.execute(sql, (build_id,))
    )


def _outcomes(db: sqlite3.Connection, run_id: int) -> Mapping[str, int]:
    sql = (
        "SELECT outcome, COUNT(*) FROM builds WHERE run_id = :run GROUP BY outcome"
        " UNION ALL SELECT CASE passed WHEN 1 THEN 'validated' ELSE 'invalid' END, COUNT(*)"
        " FROM validations WHERE run_id = :run GROUP BY passed"
        " UNION ALL SELECT 'published', COUNT(*) FROM publications WHERE run_id = :run"
    )
    return {what: count for what, count in db.execute(sql, {"run": run_id}) if count}
