"""Test a journal that cannot be used: each reason has its hint, and readers do without it."""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from imagegen.errors import ConfigError
from imagegen.journal import database, trouble
from imagegen.journal.database import SCHEMA_VERSION
from imagegen.journal.journal import Journal, open_journal
from imagegen.journal.reading import from_journal, reading_journal
from imagegen.journal.trouble import explained

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Journal:
    monkeypatch.setenv("IMAGEGEN_STATE", str(tmp_path / "state"))
    made = open_journal()
    made.end_run(made.start_run("build", ["a"]), 0)
    return made


def newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")


def words(path: Path) -> None:
    path.write_text("not a database at all, just words\n" * 50)


def half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


def no_tables(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE runs (x)")
        db.commit()


def bad_rows(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE runs SET argv = 'no JSON'")
        db.commit()


@pytest.mark.parametrize(
    ("spoil", "text", "hint"),
    [
        (newer, "is of a newer imagegen", "update imagegen, or set `IMAGEGEN_STATE`"),
        (words, "is damaged", "`mv "),
        (half, "is damaged", "`mv "),
        (no_tables, "is damaged", "`mv "),
        (bad_rows, "is damaged", "`mv "),
    ],
)
def test_a_spoilt_journal_is_told_and_readers_do_without_it(
    spoil: Callable[[Path], None], text: str, hint: str, journal: Journal
) -> None:
    spoil(journal.path)
    before = journal.path.read_bytes()
    with pytest.raises(ConfigError, match=text) as caught:
        reading_journal().history()
    assert caught.value.problems[0].hint.startswith(hint)
    notes: list[str] = []
    assert from_journal(Journal.history, notes.append) == ()
    assert len(notes) == 1
    assert text in notes[0]
    assert journal.path.read_bytes() == before
    with pytest.raises(ConfigError, match=text) as caught:
        open_journal().history()
    assert caught.value.problems[0].hint.startswith(hint)


def test_what_is_said_of_a_damaged_journal_helps(journal: Journal) -> None:
    words(journal.path)
    with pytest.raises(ConfigError) as caught:
        open_journal()
    command = caught.value.problems[0].hint.split("`")[1]
    assert os.system(command) == 0
    assert open_journal().history() == ()


@pytest.mark.parametrize("below", ["", "/below"])
def test_a_state_folder_that_is_a_file(
    below: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("IMAGEGEN_STATE", f"{tmp_path}/file{below}")
    with pytest.raises(ConfigError, match="is no folder") as caught:
        open_journal()
    assert "IMAGEGEN_STATE" in caught.value.problems[0].hint
    assert reading_journal().history() == ()


def test_a_reader_makes_nothing(tmp_path: Path) -> None:
    assert reading_journal(tmp_path / "none" / "journal.db").history() == ()
    assert not (tmp_path / "none").exists()


def test_a_reader_upgrades_an_older_journal(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with closing(sqlite3.connect(path)) as db:
        for statement in database._SCHEMA.split(";"):
            db.execute(statement)
        db.execute("PRAGMA user_version = 1")
    assert reading_journal(path).history() == ()
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)


def test_a_locked_journal_is_read_and_not_written(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("imagegen.journal.journal.BEGIN_SECONDS", 0.2)
    with closing(sqlite3.connect(journal.path, isolation_level=None)) as db:
        db.execute("BEGIN EXCLUSIVE")
        assert len(open_journal().history()) == 1
        assert len(reading_journal().history()) == 1
        with pytest.raises(ConfigError, match="is locked by another process") as caught:
            open_journal().start_run("build", [])
    assert caught.value.problems[0].hint.startswith("wait for that process, find it with `fuser ")


def test_a_locked_folder_is_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BEGIN_SECONDS", 0.2)
    folder = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    with pytest.raises(ConfigError, match="is locked by another process"):
        open_journal(tmp_path / "journal.db")
    os.close(folder)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (sqlite3.OperationalError("database or disk is full"), "there is no room for"),
        (OSError(errno.ENOSPC, "No space left on device"), "there is no room for"),
        (PermissionError(errno.EACCES, "Permission denied"), "cannot be opened for writing"),
        (OSError(errno.EROFS, "Read-only file system"), "cannot be opened for writing"),
        (sqlite3.OperationalError("attempt to write a readonly database"), "cannot be opened for"),
        (sqlite3.OperationalError("unable to open database file"), "cannot be opened for"),
        (sqlite3.DatabaseError("database disk image is malformed"), "is damaged"),
    ],
)
def test_each_reason_has_words_of_its_own(error: Exception, text: str, tmp_path: Path) -> None:
    found = explained(tmp_path / "journal.db", error).problems[0]
    assert text in found.text
    assert "IMAGEGEN_STATE" in found.hint or found.hint.startswith("`mv ")


def test_an_error_without_a_reason_on_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trouble, "LEAST_BYTES", sys.maxsize)
    error = sqlite3.OperationalError("disk I/O error")
    assert "there is no room for" in explained(tmp_path / "journal.db", error).problems[0].text


def test_paths_that_are_no_text_are_written_as_text(journal: Journal) -> None:
    journal.start_run("build", ["\udcff"], cwd="/a/\udcff")
    assert journal.history()[0].cwd == "/a/\\xff"
