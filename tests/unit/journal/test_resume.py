"""Test how to go on with the last build."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from imagegen.errors import ConfigError, NothingSelectedError
from imagegen.journal.journal import Journal, open_journal
from imagegen.journal.locks import holding_lock, run_lock_path
from imagegen.journal.resume import last_build, state_of
from imagegen.model.build import BuildRecord

if TYPE_CHECKING:
    from pathlib import Path

ARGV = ("build", "--matrix", "cpu")


@pytest.fixture
def book(tmp_path: Path) -> Journal:
    return open_journal(tmp_path / "journal.db")


def begin(book: Journal, *done: str) -> int:
    run = book.start_run("build", ARGV, "/here")
    book.plan_cells(run, ["cpu/a", "cpu/b", "cpu/c"])
    for cell in done:
        book.add_build(run, BuildRecord(cell, "t", "r", "built"))
    return run


def test_what_was_not_brought_to_an_end_is_left(book: Journal, tmp_path: Path) -> None:
    run = begin(book, "cpu/b")
    book.add_build(run, BuildRecord("cpu/a", "t", "r", "failed"))
    book.end_run(run, 6)
    left = last_build(book, tmp_path, "/here")
    assert (left.run_id, left.argv, left.cells) == (run, ARGV, ("cpu/a", "cpu/c"))


def test_a_run_that_was_killed_is_gone_on_with(book: Journal, tmp_path: Path) -> None:
    begin(book, "cpu/b")
    assert last_build(book, tmp_path, "/here").cells == ("cpu/a", "cpu/c")


def test_a_run_that_ended_before_it_knew_its_cells(book: Journal, tmp_path: Path) -> None:
    book.end_run(book.start_run("build", ARGV, "/here"), 9)
    assert last_build(book, tmp_path, "/here").cells is None


def test_nothing_to_resume(book: Journal, tmp_path: Path) -> None:
    with pytest.raises(NothingSelectedError, match="there is no build to resume"):
        last_build(book, tmp_path, "/here")
    book.end_run(begin(book), 0)
    with pytest.raises(NothingSelectedError, match="nothing is left to build"):
        last_build(book, tmp_path, "/here")


def test_another_folder_and_a_run_that_still_builds_are_refused(
    book: Journal, tmp_path: Path
) -> None:
    run = begin(book)
    with pytest.raises(ConfigError, match="hint: cd /here"):
        last_build(book, tmp_path, "/elsewhere")
    with (
        holding_lock(run_lock_path(tmp_path, run), print),
        pytest.raises(ConfigError, match="still builds"),
    ):
        last_build(book, tmp_path, "/here")


def test_how_a_run_is_doing(book: Journal, tmp_path: Path) -> None:
    run = begin(book)
    with holding_lock(run_lock_path(tmp_path, run), print):
        assert state_of(book.history()[0], tmp_path) == "running"
    assert state_of(book.history()[0], tmp_path) == "killed"
    book.end_run(run, 130)
    assert state_of(book.history()[0], tmp_path) == "130"
