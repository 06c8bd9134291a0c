"""Test that commands end in time, and that none of their processes survives."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any, NoReturn

import pytest

from validate import process
from validate.process import MISSING, run


def _survives(pid: int) -> bool:
    """Return whether a process still runs a moment later, because a kill takes some time."""
    stat = Path(f"/proc/{pid}/stat")
    for _ in range(40):
        try:
            if stat.read_text().rpartition(")")[2].split()[0] == "Z":
                return False
        except (FileNotFoundError, ProcessLookupError):
            return False
        time.sleep(0.05)
    return True


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_comes_while_a_command_starts_leaves_it_not_running(
    monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    started: list[int] = []

    class Interrupted(subprocess.Popen[bytes]):
        def __init__(self, *words: Any, **options: Any) -> None:
            super().__init__(*words, **options)
            started.append(self.pid)
            os.kill(os.getpid(), number)

    def end(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    before = signal.signal(number, end)
    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            run(["sh", "-c", "sleep 600; true"], 30)
        assert signal.getsignal(number) is end
    finally:
        signal.signal(number, before)
    assert [pid for pid in started if _survives(pid)] == []
    assert len(started) == 1


def test_all_commands_that_run_are_ended_together() -> None:
    commands = [process.RunningCommand(["sh", "-c", "sleep 600; true"], 30) for _ in range(2)]
    pids = [child.pid for child in process._RUNNING]
    assert len(pids) == 2
    process.end_all()
    assert [pid for pid in pids if _survives(pid)] == []
    assert not process._RUNNING
    for command in commands:
        command.end()


def test_output_and_code_come_back() -> None:
    result = run(["sh", "-c", "echo out; echo err >&2; exit 3"], 10)
    assert (result.code, result.out, result.err, result.ok) == (3, "out\n", "err\n", False)
    assert result.says() == "`sh` ended with exit code 3: err"


def test_the_rule_that_frames_a_message_is_no_message() -> None:
    result = run(["sh", "-c", "echo -----; echo no place for a session; echo -----; exit 213"], 10)
    assert result.says() == "`sh` ended with exit code 213: no place for a session"


@pytest.mark.parametrize(("load", "patience"), [(0.5, 1.0), (12.0, 3.0), (400.0, 5.0)])
def test_a_loaded_machine_has_more_time(
    monkeypatch: pytest.MonkeyPatch, load: float, patience: float
) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (load, load, load))
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    assert process.patience() == patience


def test_a_program_that_is_not_there_is_a_result() -> None:
    result = run(["no-such-program"], 10)
    assert result.code == MISSING
    assert result.says() == (
        "`no-such-program` ended with exit code 127: no-such-program: No such file or directory"
    )


def test_a_command_that_hangs_is_killed_with_all_of_its_session(tmp_path: Path) -> None:
    note = tmp_path / "pids"
    # The second sleep has a process group of its own, as the ranks of mpirun have.
    script = f"set -m; sleep 60 & echo $! > {note}; exec sleep 60"
    started = time.monotonic()
    result = run(["bash", "-c", script], 0.5)
    assert result.timed_out
    assert not result.ok
    assert time.monotonic() - started < 10
    assert not _survives(int(note.read_text()))


def test_what_a_command_leaves_behind_is_killed_after_a_normal_end(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    result = run(["bash", "-c", f"set -m; sleep 60 & echo $! > {note}"], 10)
    assert result.ok
    assert result.seconds < 5
    assert not _survives(int(note.read_text()))


def test_lines_are_handed_on_as_they_come() -> None:
    seen: list[tuple[str, float]] = []
    started = time.monotonic()
    script = "echo one; sleep 1; printf two"
    run(["sh", "-c", script], 10, on_line=lambda line: seen.append((line, time.monotonic())))
    assert [line for line, _ in seen] == ["one", "two"]
    assert seen[0][1] - started < 0.9


def test_the_environment_replaces_ours_and_forbids_byte_code() -> None:
    result = run(["sh", "-c", "echo $A $PYTHONDONTWRITEBYTECODE $HOME"], 10, {"A": "1"})
    assert result.out == "1 1\n"
    assert os.environ.get("A") is None


def test_what_processes_print_at_the_same_time_is_all_kept() -> None:
    prints = "(i=0; while [ $i -lt 200 ]; do echo line; i=$((i+1)); done) & "
    for _ in range(5):
        assert run(["sh", "-c", prints * 8 + "wait"], 60).out.count("line\n") == 1600
