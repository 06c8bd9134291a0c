"""Test what starts before the checks are loaded, and one import that answers for two."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from unit.validate.gpu_machines import write
from validate.expected import Expected
from validate.fixtures import Situation, SlowProbe
from validate.prefetch import PREFETCHED, started
from validate.probes.pip import KEY, checked
from validate.probes.training import SCRIPT, parse_answers
from validate.process import Result, RunningCommand

TORCH = {"version": "1.13.1", "mapped": ["/lib/libc10.so"]}
HOROVOD = {"mpi": True, "nccl": False, "gloo": False, "library": "/lib/mpi_lib_v2.so"}
FIRST = json.dumps({"torch": TORCH})
SECOND = json.dumps({"horovod": HOROVOD, "mapped": ["/lib/libc10.so", "/lib/libmpi.so"]})


def ended(out: str, code: int = 0, err: str = "", *, timed_out: bool = False) -> Result:
    return Result(["python3"], code, out, err, timed_out, 200.0)


def image(promised: dict[str, Any]) -> Situation:
    components = {name: {"version": "1", "facts": facts} for name, facts in promised.items()}
    expected = Expected({"components": components, "os": {}}, "")
    return Situation(expected, {"PATH": "/nowhere"}, "/", {}, (), {})


def test_both_answer() -> None:
    found = parse_answers(ended(FIRST + "\nbanner of a library\n" + SECOND))
    assert found.torch.facts == {**TORCH, "mapped": ["/lib/libc10.so", "/lib/libmpi.so"]}
    assert found.horovod.facts == HOROVOD


def test_horovod_that_does_not_load_is_not_torch_s_failure() -> None:
    found = parse_answers(ended(FIRST, 1, "ImportError: undefined symbol: _ZN3c10\n"))
    assert found.torch.facts == TORCH
    assert found.horovod.problem.endswith("exit code 1: ImportError: undefined symbol: _ZN3c10")


def test_torch_that_does_not_load_answers_for_neither() -> None:
    found = parse_answers(ended("", 1, "ImportError: libx.so"))
    assert found.torch == found.horovod
    assert not found.torch.ok


def test_a_crash_at_the_end_is_a_failure() -> None:
    found = parse_answers(ended(FIRST + "\n" + SECOND, -11))
    assert not found.torch.ok
    assert not found.horovod.ok


def test_a_horovod_that_hangs_is_told_from_one_that_is_broken() -> None:
    found = parse_answers(ended(FIRST, -9, timed_out=True))
    assert found.torch.ok
    assert found.horovod.timed_out


def test_an_end_without_a_word_is_no_answer() -> None:
    assert parse_answers(ended("")).torch.problem == "`python3` printed no facts"
    assert not parse_answers(ended(FIRST)).horovod.ok


def test_the_script_names_torch_first(tmp_path: Path) -> None:
    text = "__version__ = '2.0'\nclass version:\n    cuda = None\nclass _C:\n    pass\n"
    write(tmp_path, "torch/__init__.py", text)
    write(tmp_path, "numpy/__init__.py", "raise ImportError\n")
    write(tmp_path, "horovod/__init__.py", "raise RuntimeError('built for another torch')\n")
    end = RunningCommand(
        [sys.executable, "-S", "-c", SCRIPT], 20, {"PYTHONPATH": str(tmp_path)}
    ).result()
    found = parse_answers(end)
    assert found.torch.facts["version"] == "2.0"
    assert found.horovod.problem.endswith("RuntimeError: built for another torch")


def slow(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Make pip a shell script."""
    row = SlowProbe(KEY, lambda _: RunningCommand(["sh", "-c", script]), lambda result: result)
    monkeypatch.setitem(PREFETCHED, "python", row)


def test_what_was_begun_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow(monkeypatch, f"echo once >> {tmp_path}/log; echo no conflict")
    one = image({"python": {}})
    with started(one, ["python"]):
        assert checked(one).out == "no conflict\n"
        assert checked(one) is checked(one)
    assert (tmp_path / "log").read_text() == "once\n"


def test_nothing_survives_the_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow(monkeypatch, f"echo $$ > {tmp_path}/pid; exec sleep 60")
    pid = tmp_path / "pid"
    start = time.monotonic()
    with started(image({"python": {}}), ["python"]):
        while not (pid.exists() and pid.read_text()) and time.monotonic() < start + 10:
            time.sleep(0.01)
    assert not Path("/proc", pid.read_text().strip()).exists()


@pytest.mark.parametrize(("promised", "suites"), [({}, ["python"]), ({"python": {}}, ["torch"])])
def test_what_no_suite_asks_is_not_begun(promised: dict[str, Any], suites: list[str]) -> None:
    one = image(promised)
    with started(one, suites):
        assert one.prefetched == {}


def test_a_program_that_is_not_there_is_an_answer() -> None:
    one = image({"python": {"interpreter": "/no/python"}})
    with started(one, ["python"]):
        assert checked(one).code == 127
