"""Test that the journal keeps records complete, with several threads, processes and versions."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path

import pytest

from imagegen.config.state import state_folder
from imagegen.errors import ConfigError
from imagegen.journal.database import _SCHEMA, SCHEMA_VERSION
from imagegen.journal.journal import Journal, open_journal
from imagegen.model.build import BuildRecord, StepRecord
from imagegen.model.publication import Publication
from imagegen.model.validation import Check, Report, ValidationRecord

IMAGE = "sha256:" + "a" * 64


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return open_journal(tmp_path / "state" / "journal.db")


def build(outcome: str = "built", steps: tuple[StepRecord, ...] = ()) -> BuildRecord:
    assert outcome in ("built", "failed")
    return BuildRecord(
        "cpu/a",
        "imagegen/cpu:a",
        "sha256:r",
        "built" if outcome == "built" else "failed",
        IMAGE,
        12.5,
        4_900_000_000,
        steps,
        detail=("one", "two"),
    )


def validation(tier: str, *, passed: bool, warned: int = 0) -> ValidationRecord:
    counts = {"passed": 40, "warned": warned}
    check: Check = {"id": "os.arch", "suite": "os", "outcome": "passed", "measured": "x86_64"}
    report: Report = {"checks": [check]}
    return ValidationRecord(IMAGE, "imagegen/cpu:a", tier, passed, counts, 3.5, report)


def step(
    stage: str, seconds: float, *, cached: bool = False, text: str = "RUN x", size: int = 0
) -> StepRecord:
    return StepRecord(f"[{stage} 1/2] {text}", stage, seconds, cached, stage, "1.0", size)


def test_state_folder() -> None:
    assert state_folder({"IMAGEGEN_STATE": "/s", "XDG_STATE_HOME": "/x"}) == Path("/s")
    assert state_folder({"XDG_STATE_HOME": "/x", "HOME": "/h"}) == Path("/x/imagegen")
    relative = {"XDG_STATE_HOME": "x", "HOME": "/h"}
    assert state_folder(relative) == Path("/h/.local/state/imagegen")


def test_default_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IMAGEGEN_STATE", str(tmp_path / "mine"))
    assert open_journal().path == tmp_path / "mine" / "journal.db"
    assert (tmp_path / "mine" / "journal.db").is_file()


def test_history_tells_of_runs_the_latest_first(journal: Journal) -> None:
    first = journal.start_run("build", ["--matrix", "cpu"])
    journal.add_build(first, build())
    journal.add_build(first, build("failed"))
    journal.add_validation(first, validation("full", passed=True))
    journal.add_validation(first, validation("full", passed=False))
    journal.add_publication(first, Publication(IMAGE, "host/cpu:a", "sha256:d"))
    journal.end_run(first, 6)
    second = journal.start_run("publish", [])
    latest, before = journal.history()
    assert (latest.id, latest.verb, latest.exit_code, latest.ended) == (second, "publish", None, "")
    assert (before.verb, before.argv, before.exit_code) == ("build", ("--matrix", "cpu"), 6)
    assert before.outcomes == {
        "built": 1,
        "failed": 1,
        "validated": 1,
        "invalid": 1,
        "published": 1,
    }
    assert journal.history(1) == (latest,)
    began = datetime.fromisoformat(before.started)
    assert began.tzinfo == timezone.utc
    assert abs((datetime.now(timezone.utc) - began).total_seconds()) < 60


def test_validations_come_back_as_they_went_in(journal: Journal) -> None:
    run = journal.start_run("validate", [])
    journal.add_validation(run, validation("full", passed=True))
    journal.add_validation(run, validation("static", passed=False, warned=2))
    assert journal.validations(IMAGE) == (
        validation("static", passed=False, warned=2),
        validation("full", passed=True),
    )
    assert journal.validations("sha256:other") == ()


def test_the_latest_full_validation_decides_else_the_latest_static_one(journal: Journal) -> None:
    run_id = journal.start_run("validate", [])
    assert journal.validation_of(IMAGE) is None
    journal.add_validation(run_id, validation("partial", passed=True))
    assert journal.validation_of(IMAGE) is None
    journal.add_validation(run_id, validation("static", passed=True))
    assert journal.validation_of(IMAGE) == validation("static", passed=True)
    journal.add_validation(run_id, validation("full", passed=True))
    journal.add_validation(run_id, validation("full", passed=False))
    journal.add_validation(run_id, validation("static", passed=True))
    assert journal.validation_of(IMAGE) == validation("full", passed=False)


def test_last_publication_of_a_reference(journal: Journal) -> None:
    run = journal.start_run("publish", [])
    assert journal.last_publication("host/cpu:a") is None
    journal.add_publication(run, Publication(IMAGE, "host/cpu:a", "sha256:1"))
    journal.add_publication(run, Publication(IMAGE, "host/cpu:a", "sha256:2", "sha256:1"))
    journal.add_publication(run, Publication(IMAGE, "host/cpu:b", "sha256:3"))
    last = Publication(IMAGE, "host/cpu:a", "sha256:2", "sha256:1")
    assert journal.last_publication("host/cpu:a") == last


def test_step_costs_are_medians_of_what_was_really_built(journal: Journal) -> None:
    run = journal.start_run("build", [])
    base = step("torch", 0.0, cached=True, text="FROM imagegen/base:debian12")
    for seconds in (10.0, 30.0, 80.0):
        steps = (base, step("torch", seconds, size=5), step("torch", 1.0, size=700))
        journal.add_build(run, build(steps=steps))
    journal.add_build(run, build(steps=(step("torch", 0.1), step("torch", 0.0, cached=True))))
    journal.add_build(run, build("failed", steps=(step("torch", 500.0), step("ssh", 3.0))))
    assert journal.step_costs() == {("torch", "1.0"): (31.0, 705)}


def test_a_step_that_was_always_cached_has_bytes_and_no_seconds(journal: Journal) -> None:
    run = journal.start_run("build", [])
    journal.add_build(run, build(steps=(step("ssh", 0.0, cached=True, size=6),)))
    assert journal.step_costs() == {("ssh", "1.0"): (0.0, 6)}


def test_builds_of_a_run_come_back_as_they_went_in(journal: Journal) -> None:
    run, other = journal.start_run("build", []), journal.start_run("build", [])
    record = build(steps=(step("torch", 3.0, size=5), step("ssh", 0.0, cached=True)))
    journal.add_build(run, record)
    journal.add_build(other, build("failed"))
    assert journal.builds(run) == (record,)


def test_the_last_good_build_of_a_cell(journal: Journal) -> None:
    run = journal.start_run("build", [])
    assert journal.last_good("cpu/a") is None
    for record in (build(), build(steps=(step("s", 1.0),)), build("failed")):
        journal.add_build(run, record)
    found = journal.last_good("cpu/a")
    assert found == build(steps=(step("s", 1.0),))
    assert journal.last_good("cpu/b") is None


def test_the_last_run_knows_what_it_was_going_to_do(journal: Journal) -> None:
    assert journal.last_run("build") is None
    run = journal.start_run("build", ["build", "-m", "cpu"], "/somewhere")
    journal.plan_cells(run, ["cpu/a", "cpu/b"])
    journal.add_build(run, build())
    journal.start_run("publish", [])
    last = journal.last_run("build")
    assert last is not None
    assert (last.id, last.argv, last.cwd) == (run, ("build", "-m", "cpu"), "/somewhere")
    assert last.cells == ("cpu/a", "cpu/b")
    assert journal.done_cells(run) == {"cpu/a"}


def test_published_images_are_known(journal: Journal) -> None:
    run = journal.start_run("publish", [])
    journal.add_publication(run, Publication(IMAGE, "host/cpu:a", "sha256:d"))
    assert journal.published_images() == {IMAGE}


def test_a_journal_of_the_first_version_is_brought_along(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(_SCHEMA)
        db.execute("INSERT INTO runs (verb, argv, started) VALUES ('build', '[]', 'then')")
        db.execute("PRAGMA user_version = 1")
        db.commit()
    (run,) = open_journal(path).history()
    assert (run.verb, run.cwd, run.cells) == ("build", "", ())
    open_journal(path).add_build(run.id, build(steps=(step("ssh", 1.0, size=3),)))
    assert open_journal(path).step_costs() == {("ssh", "1.0"): (1.0, 3)}


def test_threads_write_at_once(journal: Journal) -> None:
    run = journal.start_run("build", [])
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: journal.add_build(run, build()), range(80)))
    assert journal.history()[0].outcomes == {"built": 80}


def test_processes_open_and_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    code = (
        "import sys; from pathlib import Path; from imagegen.journal.journal import open_journal\n"
        "journal = open_journal(Path(sys.argv[1]))\n"
        "for _ in range(20): journal.end_run(journal.start_run('build', []), 0)\n"
    )
    started = [subprocess.Popen([sys.executable, "-c", code, str(path)]) for _ in range(6)]
    assert [process.wait() for process in started] == [0] * 6
    runs = open_journal(path).history(1000)
    assert len(runs) == 120
    assert {run.exit_code for run in runs} == {0}


def test_a_build_is_written_whole_or_not_at_all(journal: Journal) -> None:
    run = journal.start_run("build", [])
    bad = StepRecord("[a 1/1] RUN x", "a", None, cached=False)  # type: ignore[arg-type]
    with pytest.raises(ConfigError):
        journal.add_build(run, build(steps=(step("a", 1.0), bad)))
    assert journal.history()[0].outcomes == {}
    journal.add_build(run, build())
    assert journal.history()[0].outcomes == {"built": 1}


def test_it_is_wal_with_its_schema_version(journal: Journal) -> None:
    with closing(sqlite3.connect(journal.path)) as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert db.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)


def test_opening_again_keeps_what_is_there(journal: Journal) -> None:
    journal.start_run("build", [])
    assert len(open_journal(journal.path).history()) == 1
