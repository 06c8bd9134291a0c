"""Test what is said where a container may do little, and that the output always comes."""

from __future__ import annotations

import errno
import io
import os
import sys
import tempfile
from typing import TYPE_CHECKING

import pytest

from unit.validate import trees
from validate import streams, unnamed
from validate.check import FAILED, CheckFailed, CheckResult, CheckWarned
from validate.probes import writable
from validate.pytest_plugin import _with_restriction
from validate.restrictions import (
    DISK,
    MEMORY,
    OPEN_FILES,
    PROCESSES,
    READ_ONLY,
    TEMPORARY,
    Restriction,
    restriction,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("error", "lacks"),
    [
        (OSError(errno.EROFS, "Read-only file system", "/etc/x"), READ_ONLY),
        (BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), PROCESSES),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), MEMORY),
        (OSError(errno.EMFILE, "Too many open files"), OPEN_FILES),
        (OSError(errno.ENOSPC, "No space left on device"), DISK),
        (MemoryError(), MEMORY),
        (RuntimeError("can't start new thread"), PROCESSES),
        (AssertionError("Unexpected exit code 2: sh: 0: Cannot fork"), PROCESSES),
        (FileNotFoundError(2, "No usable temporary directory found in ['/tmp']"), TEMPORARY),
        (FileNotFoundError(2, "No such file or directory"), None),
        (ValueError("x"), None),
    ],
)
def test_an_error_shows_what_a_container_lacks(
    error: BaseException, lacks: Restriction | None
) -> None:
    assert restriction(error) == lacks
    told = _with_restriction(error)
    if lacks is None:
        assert told is error
    else:
        assert isinstance(told, CheckFailed)
        assert (told.cause, told.remedy) == (lacks.cause, lacks.remedy)
        assert told.remedy.kind == "launch"


def test_a_check_that_knows_its_cause_keeps_it() -> None:
    exact = CheckFailed("ssh: Too many open files", "an exact cause", "a remedy")
    assert _with_restriction(exact) is exact
    told = _with_restriction(CheckWarned("`ip` does not start: Too many open files"))
    assert isinstance(told, CheckWarned)
    assert told.cause == OPEN_FILES.cause


def test_output_of_commands_needs_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_folder(*_: object, **__: object) -> None:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "TemporaryFile", no_folder)
    with unnamed.unnamed_file() as file:
        file.write(b"said")
        file.seek(0)
        assert file.read() == b"said"
    monkeypatch.delattr(os, "memfd_create")
    with pytest.raises(FileNotFoundError):
        unnamed.unnamed_file()


def test_output_goes_to_shared_memory_where_python_has_no_call_for_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delattr(os, "memfd_create")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    monkeypatch.setattr(unnamed, "IN_MEMORY", str(tmp_path))
    with unnamed.unnamed_file() as file:
        assert file.writable()


def test_closed_streams_lead_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    streams.open_missing()
    assert [one.fileno() for one in (sys.stdin, sys.stdout, sys.stderr)] == [0, 1, 2]


class Stdout(io.StringIO):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def flush(self) -> None:
        raise OSError(self.number, os.strerror(self.number))


@pytest.mark.parametrize(
    ("number", "told"), [(errno.ENOSPC, "No space left on device"), (errno.EPIPE, "")]
)
def test_a_full_output_is_told_and_a_reader_that_left_is_not(
    monkeypatch: pytest.MonkeyPatch, number: int, told: str
) -> None:
    given_up: list[bool] = []
    monkeypatch.setattr(streams, "_give_up_stdout", lambda: given_up.append(True))
    monkeypatch.setattr(sys, "stdout", Stdout(number))
    assert streams.put_out(["a", "b"]) == told
    assert given_up == [True]


def test_a_folder_says_why_nothing_can_be_written(tmp_path: Path) -> None:
    root = str(tmp_path)
    (tmp_path / "tmp").mkdir()
    assert writable.why_not_writable(root, "/tmp") == ""
    assert writable.why_not_writable(root, "/gone") == "no folder"
    assert writable.is_read_only("/", "/proc/sys/gone") is False


def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **env: str) -> dict[str, CheckResult]:
    for name in ("TMPDIR", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    for path in ("tmp", "var/tmp", "root"):
        (tmp_path / path).mkdir(parents=True, exist_ok=True)
        (tmp_path / path).chmod(0o1777)
    expected = trees.expected(tmp_path)
    return {
        **trees.findings(tmp_path, "os", expected, static=True),
        **trees.findings(tmp_path, "limits", expected),
    }


def test_a_temporary_folder_of_another_place_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = places(tmp_path, monkeypatch, TMPDIR="/scratch")["os.tmp"]
    assert (one.outcome, one.measured, one.remedy) == (
        FAILED,
        "/scratch: no folder",
        "unset TMPDIR",
    )


@pytest.mark.parametrize(
    ("env", "measured"), [({}, "HOME: not set"), ({"HOME": "/gone"}, "HOME=/gone: no folder")]
)
def test_a_user_without_a_home_is_warned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, env: dict[str, str], measured: str
) -> None:
    one = places(tmp_path, monkeypatch, **env)["lim.home"]
    assert (one.outcome, one.measured) == ("warned", measured)


def test_a_read_only_file_system_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "ST_RDONLY", 0xFFFFFFFF)
    found = places(tmp_path, monkeypatch, HOME="/root")
    assert found["os.tmp"].measured == "/tmp: read-only"
    assert found["os.tmp"].kind == "launch"
    assert found["lim.root"].measured.startswith("/ is read-only; no SSH keys can be made in /")
    assert found["lim.home"].cause == READ_ONLY.cause
    assert found["lim.home"].kind == "launch"  # no folder inside can be written either
