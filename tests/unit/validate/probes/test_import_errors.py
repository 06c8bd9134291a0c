"""Test why a framework does not import: the words of the loader, and what to paste."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unit.validate.gpu_machines import Machine, write
from validate.check import FAILED, PASSED, SKIPPED
from validate.probes.import_errors import SLOW, Why, why
from validate.probes.interpreter import Answer

if TYPE_CHECKING:
    from pathlib import Path

TOO_OLD = "ImportError: {}: version `GLIBC_2.38' not found (required by /usr/lib/libc10.so)"
STACK = (
    "libtorch_cpu.so: cannot enable executable stack as shared object requires: Invalid argument"
)

TORCH = """
class version:
    cuda = None
class _C:
    pass
class Tensor:
    def numpy(self):
        {}
def ones(count):
    return Tensor()
def from_numpy(array):
    return array
__version__ = "1.13.1"
"""
NOT_AVAILABLE = 'raise RuntimeError("Numpy is not available")'


@pytest.mark.parametrize(
    ("problem", "env", "remedy"),
    [
        (
            TOO_OLD.format("/opt/old/libc.so.6"),
            {"LD_LIBRARY_PATH": "/opt/old"},
            "unset LD_LIBRARY_PATH",
        ),
        (
            TOO_OLD.format("/opt/old/libc.so.6"),
            {"LD_LIBRARY_PATH": "/usr/local/nvidia/lib:/opt/old"},
            "export LD_LIBRARY_PATH=/usr/local/nvidia/lib",
        ),
        (
            TOO_OLD.format("/lib/libc.so.6"),
            {"LD_LIBRARY_PATH": "/opt"},
            "imagegen build   # with a",
        ),
        ("undefined symbol: ncclCommSplit", {}, "imagegen build"),
        ("undefined symbol: ncclX", {"LD_LIBRARY_PATH": "/opt"}, "unset LD_LIBRARY_PATH"),
        (
            "ImportError: libx.so.3: cannot open shared object file",
            {},
            "imagegen build   # no package",
        ),
        ("OSError: /opt/torch/lib/libx.so: file too short", {}, "imagegen build"),
        (STACK, {}, "imagegen build"),
        ("No module named 'torch._C'", {"PYTHONPATH": "/opt/py39"}, "unset PYTHONPATH"),
    ],
)
def test_known_words_have_a_line_to_paste(problem: str, env: dict[str, str], remedy: str) -> None:
    told = why(Answer({}, problem), env)
    assert told.cause
    assert told.remedy.startswith(remedy)


def test_other_words_are_left_to_the_check() -> None:
    assert why(Answer({}, "No module named 'torch'"), {}) == Why()
    assert why(Answer({}, "SyntaxError: invalid syntax"), {}) == Why()


def test_what_takes_long_is_not_said_to_be_broken() -> None:
    answer = Answer({}, "`python3` did not end within 200 s", timed_out=True)
    assert why(answer, {"PYTHONPATH": "/x"}) == SLOW
    assert "says nothing about the image" in SLOW.cause


@pytest.mark.parametrize(
    ("body", "numpy", "outcome", "measured"),
    [
        ("return self", "2.1.0", PASSED, "NumPy 2.1.0"),
        (NOT_AVAILABLE, "2.1.0", FAILED, "with NumPy 2.1.0: Numpy is not available"),
        (NOT_AVAILABLE, "", SKIPPED, "the image has no NumPy"),
    ],
)
def test_arrays_go_from_one_to_the_other(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    body: str,
    numpy: str,
    outcome: str,
    measured: str,
) -> None:
    machine = Machine(tmp_path, monkeypatch)
    machine.promise("torch", "1.13.1")
    write(machine.site, "torch/__init__.py", TORCH.format(body))
    text = f"__version__ = {numpy!r}\n" if numpy else "raise ImportError\n"
    write(machine.site, "numpy/__init__.py", text)
    found = machine.findings("torch", static=True)["torch.numpy"]
    assert (found.outcome, found.measured) == (outcome, measured)
