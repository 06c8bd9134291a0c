"""Programs that hang and heed no signal: each check ends in its time, and says so."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from unit import conftest
from validate import process
from validate.found import FAILED
from validate.probes import peers, sshd

from . import trees
from .gpu_machines import write
from .test_validate_process import _survives

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HANGS = "#!/bin/sh\ntrap '' TERM\nsleep 600 & sleep 600\n"


@pytest.fixture
def stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], str]:
    """Makes a program; every command of the test has half a second."""
    waited = process._wait
    monkeypatch.setattr(process, "GRACE_SECONDS", 0.1)
    short = lambda child, limit, tail: waited(child, min(limit, 0.5), tail)  # noqa: E731
    monkeypatch.setattr(process, "_wait", short)

    def make(name: str, text: str) -> str:
        path = write(tmp_path, name, text)
        path.chmod(0o755)
        monkeypatch.setattr(conftest, "HARMLESS", (*conftest.HARMLESS, str(path), path.name))
        return str(path)

    return make


def test_a_launcher_that_hangs(tmp_path: Path, stub: Callable[[str, str], str]) -> None:
    stub("opt/mpi/bin/mpirun", HANGS)
    stub("opt/mpi/bin/ompi_info", f"#!/bin/sh\necho path:prefix:{tmp_path}/opt/mpi\n")
    facts = {"prefix": f"{tmp_path}/opt/mpi"}
    components = {"openmpi": {"version": "4.1.4", "facts": facts}}
    begun = time.monotonic()
    found = trees.findings(tmp_path, "openmpi", trees.expected(tmp_path, components=components))
    assert time.monotonic() - begun < 20
    assert found["mpi.version"].outcome == found["mpi.2rank"].outcome == FAILED
    assert "`mpirun` did not end within" in found["mpi.2rank"].measured


def test_a_session_that_hangs(
    tmp_path: Path, stub: Callable[[str, str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}/bin", prepend=":")
    stub("bin/ssh", HANGS)
    begun = time.monotonic()
    assert sshd.login(2222, "true").timed_out
    assert peers.visit("other", "orted").result.timed_out
    assert time.monotonic() - begun < 10


def test_a_service_that_heeds_no_signal_goes_with_its_block(
    tmp_path: Path, stub: Callable[[str, str], str]
) -> None:
    note = tmp_path / "pid"
    program = stub("bin/sshd", HANGS.replace("sleep 600 &", f"echo $$ > {note}; sleep 600 &"))
    with process.background([program]):
        while not (note.exists() and note.read_text()):
            time.sleep(0.02)
    left = process._session(int(note.read_text()))
    assert [pid for pid in left if _survives(pid)] == []


def test_a_tool_of_the_driver_that_hangs(stub: Callable[[str, str], str]) -> None:
    result = process.run([stub("bin/nvidia-smi", HANGS), "topo", "-m"], 30)
    assert result.timed_out
    assert result.says().startswith("`nvidia-smi` did not end within")
