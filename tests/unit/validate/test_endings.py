"""Test how the end of a command is read: signals, and what the loader prints for every program."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from unit import conftest
from validate import endings
from validate.process import BROKEN, Result, run

if TYPE_CHECKING:
    from pathlib import Path

RANK = "mpirun noticed that process rank 0 with PID 0 on node a exited on signal 9 (Killed)."
PRELOAD = (
    "ERROR: ld.so: object '/opt/gone.so' from LD_PRELOAD cannot be preloaded (cannot open shared "
    "object file): ignored.\n"
)
AUDIT = (
    "ERROR: ld.so: object '/opt/audit.so' cannot be loaded as audit interface: cannot open shared "
    "object file; ignored.\n"
)


@pytest.mark.parametrize(
    ("code", "printed", "number"),
    [
        (-11, "", 11),
        (139, "", 11),
        (137, RANK, 9),
        (1, RANK, 9),
        (0, RANK, 0),
        (1, "  exitcode  : -11 (pid: 42)\n  traceback : Signal 11 (SIGSEGV) received", 11),
        (1, "died with <Signals.SIGKILL: 9>.", 9),
        (1, "  exitcode  : 1 (pid: 42)", 0),
        (1, "an error", 0),
        (255, "", 0),
        (130, "", 0),
    ],
)
def test_the_signal_that_ended_a_command(code: int, printed: str, number: int) -> None:
    assert endings.signal_of(code, printed) == number


def test_what_the_loader_prints_for_every_program_is_taken_apart() -> None:
    text = PRELOAD + "OpenSSH_9.2p1\n" + AUDIT + PRELOAD
    assert endings.without_complaints(text) == "OpenSSH_9.2p1\n"
    assert [(one.library, one.setting) for one in endings.complaints(text)] == [
        ("/opt/gone.so", "LD_PRELOAD"),
        ("/opt/audit.so", "LD_AUDIT"),
    ]


def test_a_command_does_not_repeat_what_the_loader_prints(tmp_path: Path) -> None:
    said = tmp_path / "said"
    said.write_text(PRELOAD)
    result = run(["sh", "-c", f"cat {said} >&2; echo own >&2"], 10)
    assert result.err == "own\n"
    assert [one.library for one in result.complaints] == ["/opt/gone.so"]


def test_commands_that_break_are_kept() -> None:
    before = len(BROKEN)
    assert run(["sh", "-c", "kill -SEGV $$"], 10).killed_by == signal.SIGSEGV
    missing = "sh: error while loading shared libraries: liba.so.1: file too short"
    run(["sh", "-c", f"echo '{missing}' >&2; exit 127"], 10)
    run(["sh", "-c", "exit 1"], 10)
    assert [one.killed_by for one in BROKEN[before:]] == [signal.SIGSEGV, 0]


def test_a_command_that_was_too_slow_was_not_killed_by_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(conftest, "HARMLESS", (*conftest.HARMLESS, "sleep"))
    result = run(["sleep", "60"], 0.2)
    assert (result.timed_out, result.killed_by) == (True, 0)


@pytest.mark.parametrize("last", ['{"torch": {}}', "44  /usr/bin/python3(_start+0x21) [0x682581]"])
def test_facts_and_lists_of_calls_are_no_last_words(last: str) -> None:
    said = Result(["/usr/bin/python3"], -7, last + "\n", "").says()
    assert said == "`python3` was ended by signal 7 (SIGBUS): it said nothing"
