"""Test the check of installed files: what fails, what warns, what the recipe itself may change."""

from __future__ import annotations

import hashlib
import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

from unit.validate import trees
from validate.check import CheckFailed, CheckWarned
from validate.expected import ExpectationError
from validate.fixtures import Measure, Situation
from validate.probes.interpreter import Answer
from validate.probes.sites import LOADED
from validate.suites import test_os_files

if TYPE_CHECKING:
    from pathlib import Path

FILES = {"/usr/lib/libtorch.so": "torch", "/usr/lib/torch.py": "py"}
OTHERS = {"/usr/bin/perl": "perl"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, files in (("libtorch", FILES), ("perl", OTHERS)):
        sums = ""
        for path, text in files.items():
            os.utime(trees.write(tmp_path, path, text), (1, 1))
            sums += f"{hashlib.md5(text.encode()).hexdigest()}  {path.lstrip('/')}\n"
        trees.write(tmp_path, f"/var/lib/dpkg/info/{name}.md5sums", sums)
        trees.write(tmp_path, f"/var/lib/dpkg/info/{name}.list")
    return tmp_path


def _look(root: Path, **recipe: Any) -> str:
    components = {"python": {"version": "3", "facts": {"interpreter": sys.executable}}}
    expected = trees.expected(root, components=components, **recipe)
    image, measure = Situation(expected, {}, str(root), {}), Measure()
    image.once("locate", lambda: Answer({"sites": [], "folders": []}, ""))
    image.once(LOADED, lambda: {"/usr/lib/libtorch.so"})
    test_os_files.test_files(image, measure)
    return measure.text


def test_what_is_whole_is_counted(root: Path) -> None:
    assert _look(root).startswith("3 of 3 files, 0 of 0 MiB in ")


def test_a_change_in_a_package_that_training_loads_fails(root: Path) -> None:
    """The file itself need not be loaded: it is of the same package."""
    trees.write(root, "/usr/lib/torch.py", "another")
    with pytest.raises(CheckFailed, match=r"^/usr/lib/torch.py of libtorch is changed$") as failed:
        _look(root)
    assert not isinstance(failed.value, CheckWarned)
    assert " --reinstall " in failed.value.remedy
    assert " libtorch; " in failed.value.remedy


def test_a_change_elsewhere_is_a_warning(root: Path) -> None:
    (root / "usr/bin/perl").unlink()
    with pytest.raises(CheckWarned, match=r"^/usr/bin/perl of perl is not there$"):
        _look(root)


def test_what_the_recipe_changes_is_accepted_and_nothing_beside_it(root: Path) -> None:
    trees.write(root, "/usr/lib/torch.py", "patched")
    patched = [{"path": "/usr/lib/torch.py", "reason": "no libuv in this PyTorch"}]
    assert _look(root, patched=patched).endswith("; 1 changed by the recipe")
    trees.write(root, "/usr/lib/libtorch.so", "another")
    with pytest.raises(CheckFailed, match=r"^/usr/lib/libtorch.so of libtorch is changed$"):
        _look(root, patched=patched)
    (root / "usr/lib/torch.py").unlink()
    with pytest.raises(CheckFailed, match=r"torch.py of `patched` in image.json is not there"):
        _look(root, patched=patched)


def test_a_diversion_is_no_way_around_it(root: Path) -> None:
    """Unless the recipe says so, or the place is left empty: that is how a file is set aside."""
    kept = "/usr/lib/torch.py.kept"
    (root / "usr/lib/torch.py").rename(root / kept.lstrip("/"))
    trees.write(root, "/var/lib/dpkg/diversions", f"/usr/lib/torch.py\n{kept}\n:\n")
    assert _look(root).startswith("3 of 3 files")
    trees.write(root, "/usr/lib/torch.py", "another")
    with pytest.raises(CheckFailed, match=r"torch.py is diverted, and another file in its place"):
        _look(root)
    patched = [{"path": "/usr/lib/torch.py", "reason": "no libuv in this PyTorch"}]
    assert _look(root, patched=patched).startswith("3 of 3 files")


@pytest.mark.parametrize("patched", [{}, [1], [{"path": "/a"}], [{"path": "/a", "reason": ""}]])
def test_a_list_of_changes_without_reasons_is_refused(tmp_path: Path, patched: object) -> None:
    with pytest.raises(ExpectationError, match="patched is not a list of objects"):
        trees.expected(tmp_path, patched=patched)


def test_a_machine_that_is_too_slow_for_any_file_passes_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(test_os_files, "SECONDS", 0.0)
    with pytest.raises(pytest.skip.Exception, match=r"neither dpkg nor a wheel|no file could"):
        _look(root)
