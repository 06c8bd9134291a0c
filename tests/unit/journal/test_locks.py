"""Test locks of cells and runs between two real processes."""

from __future__ import annotations

import fcntl
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from imagegen.journal import locks as cell_locks
from imagegen.journal.journal import open_journal
from imagegen.journal.locks import (
    EVERYBODY,
    POLL_SECONDS,
    cell_lock_path,
    engine_locks,
    free,
    holding_lock,
)

if TYPE_CHECKING:
    from pathlib import Path

HOLDER = """
import sys
from pathlib import Path
from imagegen.journal.locks import holding_lock
with holding_lock(Path(sys.argv[1]), print):
    print("held", flush=True)
    sys.stdin.read()
"""

WRITER = """
import sys
from pathlib import Path
from imagegen.journal.journal import open_journal
from imagegen.model.build import BuildRecord
book = open_journal(Path(sys.argv[1]))
for number in range(25):
    run = book.start_run("build", [])
    book.add_build(run, BuildRecord(f"a/{number}", "t", "r", "built"))
    book.end_run(run, 0)
"""


def another_process(program: str, path: Path) -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", program, str(path)]
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder that all users of this host share."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(EVERYBODY)
    monkeypatch.setattr(cell_locks, "SHARED_FOLDERS", (tmp_path / "none", folder))
    return folder


def test_a_lock_that_is_waited_for_in_vain_is_not_held(tmp_path: Path) -> None:
    path = cell_lock_path(tmp_path, "image:tag")
    told: list[str] = []
    with holding_lock(path, told.append) as waited:
        assert not waited
        assert not free(path)
        content = path.read_text()
        with holding_lock(path, told.append, lambda: True):
            assert path.read_text() == content
    assert free(path)
    assert free(tmp_path / "nothing")


def test_a_lock_ends_with_its_process_however_that_ends(tmp_path: Path) -> None:
    path, told = tmp_path / "a.cell", list[str]()
    with another_process(HOLDER, path) as theirs:
        assert theirs.stdout
        assert theirs.stdout.readline() == "held\n"
        with holding_lock(path, told.append, lambda: bool(told)):
            assert not free(path)
        assert told == [f"process {theirs.pid}"]
        theirs.kill()
    with holding_lock(path, told.append) as waited:
        assert not waited


def test_the_holder_is_named_also_by_who_came_at_the_same_moment(tmp_path: Path) -> None:
    path, said = tmp_path / "a.cell", list[str]()
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write("the holder before")
        file.flush()

        def write_number() -> None:
            file.seek(0)
            file.truncate()
            file.write("4711")
            file.flush()

        writing = threading.Timer(POLL_SECONDS / 4, write_number)
        writing.start()
        with holding_lock(path, said.append, lambda: bool(said)):
            writing.join()
    assert said == ["process 4711"]


def test_one_engine_has_one_folder_of_locks_whatever_the_state_folder(
    shared: Path, tmp_path: Path
) -> None:
    first = engine_locks("ID:1", tmp_path / "a")
    assert first == engine_locks("ID:1", tmp_path / "b") != engine_locks("ID:2", tmp_path / "a")
    assert first.parent == shared
    assert first.stat().st_mode & EVERYBODY == EVERYBODY
    path = cell_lock_path(first, "image:tag")
    with holding_lock(path, print):
        assert path.stat().st_mode & 0o777 == 0o666


def test_without_a_folder_for_everybody_locks_are_in_the_state_folder(
    shared: Path, tmp_path: Path
) -> None:
    shared.chmod(0o755)
    assert engine_locks("ID:1", tmp_path / "a").parent == tmp_path / "a"


def test_two_processes_write_one_journal(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with another_process(WRITER, path) as one, another_process(WRITER, path) as other:
        pass
    assert (one.returncode, other.returncode) == (0, 0)
    runs = open_journal(path).history(100)
    assert [(run.exit_code, run.outcomes) for run in runs] == [(0, {"built": 1})] * 50
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
