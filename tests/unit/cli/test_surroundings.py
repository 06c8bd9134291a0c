"""Test closed and full streams, bytes that are no text, and the signals that end a run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from imagegen.cli.surroundings import ENDING, end_like_ctrl_c
from unit.conftest import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

CLOSED = """
import os, sys
for number in map(int, sys.argv[1].split(",")):
    os.close(number)
os.execv(sys.executable, [sys.executable, "-m", "imagegen", *sys.argv[2:]])
"""


def ended(
    argv: Sequence[str], state: Path, stdout: int = subprocess.PIPE, stderr: int = subprocess.PIPE
) -> subprocess.CompletedProcess[bytes]:
    environ = {**os.environ, "IMAGEGEN_STATE": str(state), "PYTHONPATH": str(REPOSITORY)}
    return subprocess.run(
        [sys.executable, *argv],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        env=environ,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("closed", ["1", "2", "0", "1,2", "0,1,2"])
@pytest.mark.parametrize(
    ("verb", "code"), [(("history",), 0), (("list", "-m", "nosuch"), 3), (("catalog",), 0)]
)
def test_closed_streams_change_no_exit_code(
    closed: str, verb: tuple[str, ...], code: int, tmp_path: Path
) -> None:
    end = ended(["-c", CLOSED, closed, *verb], tmp_path)
    assert end.returncode == code, end.stderr
    assert b"Traceback" not in end.stderr
    assert b"defect" not in end.stderr
    journal = tmp_path / "journal.db"
    # With stdout closed, the journal would get its number, and the table its bytes.
    assert not journal.exists() or journal.read_bytes().startswith(b"SQLite format 3\0")


@pytest.mark.parametrize(
    ("verb", "code"),
    [
        (["history"], 2),
        (["history", "--format", "json"], 2),
        (["--help"], 2),
        (["list", "-m", "nosuch", "--format", "json"], 3),
    ],
)
def test_a_full_disk_under_stdout_is_told(verb: list[str], code: int, tmp_path: Path) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    end = ended(["-m", "imagegen", *verb], tmp_path, stdout=full)
    os.close(full)
    assert end.returncode == code
    assert end.stderr.startswith(b"error: ")
    assert (b"No space left on device" in end.stderr) == (code == 2)
    assert b"defect" not in end.stderr
    assert b"Exception ignored" not in end.stderr


def test_a_full_disk_under_stderr_changes_no_exit_code(tmp_path: Path) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    end = ended(["-m", "imagegen", "list", "-m", "nosuch"], tmp_path, stderr=full)
    os.close(full)
    assert end.returncode == 3


@pytest.fixture
def handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in ENDING}
    for number in ENDING:
        signal.signal(number, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize("number", ENDING)
def test_a_signal_ends_like_ctrl_c_and_a_second_one_does_not_disturb(
    number: signal.Signals,
) -> None:
    end_like_ctrl_c()
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), number)
    for other in ENDING:
        os.kill(os.getpid(), other)


@pytest.mark.usefixtures("handlers")
def test_a_signal_that_is_ignored_stays_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    end_like_ctrl_c()
    os.kill(os.getpid(), signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
