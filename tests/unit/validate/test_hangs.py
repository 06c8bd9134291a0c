"""Test programs that hang and ignore signals: each check ends in its time and says so."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
import testinfra

from unit import conftest
from unit.conftest import REPOSITORY
from unit.validate import trees
from unit.validate.gpu_machines import Machine, write
from unit.validate.test_process import _survives
from validate import cli, process, testinfra_timeout
from validate.check import FAILED
from validate.probes import fabric, native, peers, sshd
from validate.probes.ssh_user import ROOT
from validate.report.report import EXIT_INTERRUPTED
from validate.sessions import processes_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HANGS = "#!/bin/sh\ntrap '' TERM\nsleep 600 & sleep 600\n"


@pytest.fixture
def stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], str]:
    """Write programs; every command of the test has half a second."""
    waited = process._wait
    monkeypatch.setattr(process, "GRACE_SECONDS", 0.1)
    short = lambda child, limit, *more: waited(child, min(limit, 0.5), *more)  # noqa: E731
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
    assert sshd.login(2222, "true", ROOT).timed_out
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
    left = processes_of(int(note.read_text()))
    assert [pid for pid in left if _survives(pid)] == []


def test_a_tool_of_the_driver_that_hangs(stub: Callable[[str, str], str]) -> None:
    result = process.run([stub("bin/nvidia-smi", HANGS), "topo", "-m"], 30)
    assert result.timed_out
    assert result.says().startswith("`nvidia-smi` did not end within")


def test_a_whole_run_in_which_everything_hangs_ends_and_leaves_nothing(
    tmp_path: Path,
    stub: Callable[[str, str], str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    note = tmp_path / "pids"
    hangs = HANGS.replace("sleep 600 &", f"echo $$ >> {note}; sleep 600 & echo $! >> {note};")
    for name in ("mpirun", "ompi_info"):
        stub(f"opt/mpi/bin/{name}", hangs)
    for name in ("ssh", "gcc", "g++", "nvidia-smi", "ibv_devinfo"):
        stub(f"bin/{name}", hangs)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin", prepend=":")
    python = stub("bin/python3", hangs)
    parts = {
        "python": {"version": "3.11", "facts": {"interpreter": python}},
        "torch": {"version": "2.6.0"},
        "horovod": {"version": "0.28.1"},
        "gcc": {"version": "12"},
        "openmpi": {"version": "4.1.4", "facts": {"prefix": f"{tmp_path}/opt/mpi"}},
    }
    trees.expected(tmp_path, components=parts)
    started = time.monotonic()
    arguments = ["--expect", f"{tmp_path}/image.json", "--root", str(tmp_path)]
    assert cli.main([*arguments, "--only", "python,gcc,torch,openmpi,horovod"]) == 1
    assert time.monotonic() - started < 60
    out = capsys.readouterr().out
    assert out.count("did not end within") > 4
    assert [pid for pid in note.read_text().split() if _survives(int(pid))] == []


@pytest.mark.usefixtures("stub")
def test_a_library_that_hangs_when_it_looks_for_devices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(tmp_path, monkeypatch)
    source = "#include <unistd.h>\nint ibv_get_device_list(int *n) { sleep(600); return 0; }\n"
    path = machine.lib("libibverbs.so.1", source)
    result = native.run_script(fabric.COUNT_DEVICES, [str(path)], dict(os.environ))
    assert result.timed_out
    assert native.ended(str(path), result).endswith(" s")


def test_a_command_of_testinfra_has_a_limit_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(testinfra_timeout, "SECONDS", 0.5)
    backend = testinfra.get_host("local://").backend
    begun = time.monotonic()
    with testinfra_timeout.limited_commands():
        hung = backend.run("trap '' TERM; sleep 600 & echo $!; sleep 600")
        held = backend.run("printf 'a\\377'; sleep 600 &")
    assert time.monotonic() - begun < 10
    assert (hung.rc, held.rc, held.stdout_bytes) == (testinfra_timeout.TIMED_OUT, 0, b"a\xff")
    assert not _survives(int(hung.stdout))


def test_a_grandchild_that_holds_the_output_open_holds_nobody_up() -> None:
    begun = time.monotonic()
    result = process.run(["bash", "-c", "echo said; (trap '' TERM; sleep 600) &"], 30)
    assert (result.out, result.timed_out) == ("said\n", False)
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_run_that_is_asked_to_end_takes_its_commands_along(
    tmp_path: Path, number: signal.Signals
) -> None:
    note = tmp_path / "pid"
    program = write(tmp_path, "opt/mpi/bin/ompi_info", f"#!/bin/sh\necho $$ > {note}\nsleep 600\n")
    program.chmod(0o755)
    write(tmp_path, "opt/mpi/bin/mpirun").chmod(0o755)
    facts = {"prefix": f"{tmp_path}/opt/mpi"}
    trees.expected(tmp_path, components={"openmpi": {"version": "4.1.4", "facts": facts}})
    words = ["-m", "validate", "--only", "openmpi", "--expect", f"{tmp_path}/image.json"]
    with subprocess.Popen([sys.executable, *words], cwd=REPOSITORY, stderr=subprocess.PIPE) as run:
        while not (note.exists() and note.read_text()):
            assert run.poll() is None
            time.sleep(0.05)
        run.send_signal(number)
        # Python ends by SIGINT, which a shell shows as 130 too, if a class was just being made.
        assert run.wait(20) in (EXIT_INTERRUPTED, -signal.SIGINT)
    assert not _survives(int(note.read_text()))
