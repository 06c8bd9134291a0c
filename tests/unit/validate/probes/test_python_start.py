"""Test what changes how Python starts: variables, the working folder, start-up files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from unit.validate.trees import RECIPE, expected, write
from validate.fixtures import Situation
from validate.probes import python_start
from validate.probes.interpreter import Answer
from validate.probes.python_start import Finding, finding, guilty_setting, why_not

if TYPE_CHECKING:
    from collections.abc import Callable

Make = "Callable[..., Situation]"
PYTHON = str(Path(sys._base_executable))  # type: ignore[attr-defined]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Situation]:
    """Make the situation of a container whose Python is that of this machine."""
    from unit import conftest

    monkeypatch.setattr(conftest, "HARMLESS", (*conftest.HARMLESS, PYTHON))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    python = {"version": "3", "facts": {"interpreter": PYTHON}}
    recipe = expected(tmp_path, components={**RECIPE["components"], "python": python})
    return lambda **env: Situation(recipe, {"PATH": "/usr/bin:/bin", **env}, str(tmp_path), {})


def test_a_python_that_nothing_changes(make: Callable[..., Situation]) -> None:
    env = {"PYTHONUNBUFFERED": "1", "PYTHONSTARTUP": "/gone", "PYTHONFAULTHANDLER": "1"}
    assert finding(make(**env)) == Finding()


@pytest.mark.parametrize(
    ("name", "value", "seen"),
    [
        ("PYTHONHOME", "/nowhere", "ModuleNotFoundError: No module named 'encodings'"),
        ("PYTHONHASHSEED", "abc", "Fatal Python error: config_init_hash_seed"),
        ("PYTHONIOENCODING", "nonsense", "LookupError: unknown encoding: nonsense"),
    ],
)
def test_a_variable_that_keeps_python_from_starting(
    make: Callable[..., Situation], name: str, value: str, seen: str
) -> None:
    found = finding(make(**{name: value}))
    assert seen in found.seen
    assert found.cause == f"Python does not start with {name}={value}"
    assert found.remedy.startswith(f"unset {name};")
    assert not found.harmless


def test_a_file_of_the_working_folder_hides_a_module(
    make: Callable[..., Situation], tmp_path: Path
) -> None:
    write(tmp_path, "/work/random.py")
    found = finding(make())
    assert found.seen.startswith(f"{tmp_path}/work/random.py hides /")
    assert found.seen.endswith("/random.py")
    assert found.cause.endswith(f"in the working folder first, and that is {tmp_path}/work")
    assert found.remedy.startswith("cd /")


def test_files_that_nothing_loads_are_no_problem(
    make: Callable[..., Situation], tmp_path: Path
) -> None:
    for path in ("test/__init__.py", "train.py", "data/x.py", "json/readme.txt", "sys.py"):
        write(tmp_path, "/work/" + path)
    assert finding(make()) == Finding()


def test_a_folder_of_pythonpath_hides_a_module(
    make: Callable[..., Situation], tmp_path: Path
) -> None:
    folder = write(tmp_path, "/other/random.py").parent
    found = finding(make(PYTHONPATH=f"/kept:{folder}"))
    assert found.cause == f"PYTHONPATH names {folder}"
    assert found.remedy.startswith("export PYTHONPATH=/kept ")


def test_a_framework_that_another_folder_hides() -> None:
    own = ["/usr/lib/python3.11", "/usr/lib/python3/dist-packages"]
    modules = {
        "/work": {"torch": "torch/", "random": "random.py", "own": "own.py"},
        "/usr/lib/python3.11": {"random": "random.py"},
        "/usr/lib/python3/dist-packages": {"torch": "torch/", "own": "own.py"},
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(python_start, "_modules", lambda folder: modules.get(folder, {}))
        found = python_start._hidden(["", *own], own, ["sys"], "/work")
        late = python_start._hidden([own[0], "/work", own[1]], own, [], "/")
    assert [one.module for one in found] == ["random", "torch"]
    assert [one.module for one in late] == ["torch"]


def test_python_that_waits_after_each_script(make: Callable[..., Situation]) -> None:
    found = finding(make(PYTHONINSPECT="1"))
    assert (found.cause, found.harmless) == ("PYTHONINSPECT=1", False)


def interpreter(folder: Path, text: str) -> str:
    path = write(folder, "/python", f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


TRACEBACK = """\
Fatal Python error: init_import_site: Failed to import the site module
Traceback (most recent call last):
  File "<frozen site>", line 635, in <module>
  File "/usr/lib/python3.11/sitecustomize.py", line 1, in <module>
    raise SystemExit(3)
SystemExit: 3
"""


def test_a_start_up_file_that_ends_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from unit import conftest

    write(tmp_path, "/said", TRACEBACK)
    python = interpreter(tmp_path, f"case $2 in -S) ;; *) cat {tmp_path}/said >&2; exit 1;; esac")
    monkeypatch.setattr(conftest, "HARMLESS", (*conftest.HARMLESS, python))
    facts = {"version": "3", "facts": {"interpreter": python}}
    recipe = expected(tmp_path, components={**RECIPE["components"], "python": facts})
    found = finding(Situation(recipe, {}, str(tmp_path), {}))
    assert found.seen.endswith("Failed to import the site module; SystemExit: 3")
    cause = "/usr/lib/python3.11/sitecustomize.py runs at each start of Python, and ends it"
    assert found.cause == cause
    assert "sitecustomize.py" in found.remedy


def test_the_variable_that_keeps_an_import_from_working(make: Callable[..., Situation]) -> None:
    script = "import os; assert 'TORCH_HOME' not in os.environ"
    image = make(TORCH_HOME="/x", OTHER="y")
    assert guilty_setting(image, script).cause == "it works without TORCH_HOME=/x"
    assert guilty_setting(image, "raise SystemExit(1)") == ("", "")


def test_an_import_that_fails_by_the_start_of_python_says_so(
    make: Callable[..., Situation],
) -> None:
    image = make(PYTHONHOME="/nowhere")
    why = why_not(image, Answer({}, "`python3` ended with exit code 1"), "import torch")
    assert why.cause == "Python does not start with PYTHONHOME=/nowhere"


def test_a_damaged_module_is_named(make: Callable[..., Situation], tmp_path: Path) -> None:
    path = write(tmp_path, "/usr/lib/functional.py", "def f(")
    sums = f"{'0' * 32}  usr/lib/functional.py\n"
    write(tmp_path, "/var/lib/dpkg/info/python3-torch.md5sums", sums)
    said = f'Traceback\n  File "{path}", line 3\nNameError: name'
    answer = Answer({}, "NameError: name", said=said)
    cause = why_not(make(), answer, "raise SystemExit(1)").cause
    assert cause.startswith(f"truncated or damaged file: {path} (it is not what python3-torch ")
