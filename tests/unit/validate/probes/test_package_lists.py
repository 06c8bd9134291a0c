"""Test which installed files were changed, and how much is looked at before the time is up."""

from __future__ import annotations

import base64
import hashlib
import os
import threading
from typing import TYPE_CHECKING

from unit.validate import trees
from validate.probes import changed_files, package_lists
from validate.probes.package_lists import Diversion, Listed

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

OLD = 1_000_000_000
LATER = OLD + 1000


def _package(root: Path, name: str, files: dict[str, str]) -> None:
    """Install a package: its files, older than its list, and their checksums."""
    sums = ""
    for path, text in files.items():
        os.utime(trees.write(root, path, text), (OLD, OLD))
        sums += f"{hashlib.md5(text.encode()).hexdigest()}  {path.lstrip('/')}\n"
    trees.write(root, f"/var/lib/dpkg/info/{name}.md5sums", sums)
    made = trees.write(root, f"/var/lib/dpkg/info/{name}.list", "\n".join(files))
    os.utime(made, (OLD + 1, OLD + 1))


def _look(root: Path, seconds: float = 60.0) -> changed_files.Seen:
    diverted = package_lists.diversions(str(root))
    listed = list(package_lists.of_packages(str(root), diverted))
    rules = package_lists.left_out(str(root))
    training = {"torch"}
    return changed_files.look(str(root), listed, lambda o: o.owner in training, rules, seconds)


def _paths(found: list[Listed]) -> list[str]:
    return [one.path for one in found]


def test_a_file_that_was_changed_and_one_that_is_gone_are_named(tmp_path: Path) -> None:
    files = {"/usr/bin/a": "a", "/usr/bin/b": "b", "/usr/bin/c": "c"}
    _package(tmp_path, "tools:amd64", files)
    assert _look(tmp_path).changed == []
    trees.write(tmp_path, "/usr/bin/a", "another")
    (tmp_path / "usr/bin/b").unlink()
    seen = _look(tmp_path)
    assert (_paths(seen.changed), _paths(seen.gone)) == (["/usr/bin/a"], ["/usr/bin/b"])
    assert seen.changed[0].owner == "tools"
    assert (seen.files, seen.of_files) == (3, 3)


def test_a_change_that_kept_its_time_is_found_too(tmp_path: Path) -> None:
    _package(tmp_path, "tools", {"/usr/bin/a": "a"})
    os.utime(trees.write(tmp_path, "/usr/bin/a", "b"), (OLD, OLD))
    assert _paths(_look(tmp_path).changed) == ["/usr/bin/a"]


def test_what_images_are_made_without_is_not_missed(tmp_path: Path) -> None:
    paths = ("/usr/share/doc/a/x", "/opt/left/x", "/opt/left/kept", "/opt/other")
    _package(tmp_path, "tools", dict.fromkeys(paths, "x"))
    rules = "path-exclude=/opt/left/*\npath-include=/opt/left/kept\n"
    trees.write(tmp_path, "/etc/dpkg/dpkg.cfg.d/docker", rules)
    for path in paths:
        (tmp_path / path.lstrip("/")).unlink()
    assert _paths(_look(tmp_path).gone) == ["/opt/left/kept", "/opt/other"]


def test_a_diverted_file_is_looked_at_where_it_is(tmp_path: Path) -> None:
    """That of dash takes the place of the other one; the machine's own takes that of all."""
    _package(tmp_path, "dash", {"/bin/sh": "dash"})
    _package(tmp_path, "bash", {"/bin/bash": "bash"})
    _package(tmp_path, "old-sh", {"/bin/sh.distrib": "old"})
    listed = tmp_path / "var/lib/dpkg/info/old-sh.md5sums"
    listed.write_text(listed.read_text().replace("bin/sh.distrib", "bin/sh"))
    trees.write(tmp_path, "/bin/bash.kept", "bash")
    trees.write(tmp_path, "/bin/bash", "patched")
    lines = ["/bin/sh", "/bin/sh.distrib", "dash", "/bin/bash", "/bin/bash.kept", ":"]
    trees.write(tmp_path, "/var/lib/dpkg/diversions", "\n".join(lines) + "\n")
    diverted = package_lists.diversions(str(tmp_path))
    assert diverted["/bin/bash"] == Diversion("/bin/bash.kept", ":")
    seen = _look(tmp_path)
    assert (seen.changed, seen.gone, seen.files) == ([], [], 3)
    trees.write(tmp_path, "/bin/sh", "another")
    assert _paths(_look(tmp_path).changed) == ["/bin/sh"]


def test_the_telling_ones_come_first_and_the_rest_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Written after the package; then of what trains; then the small ones."""
    _package(tmp_path, "other", {"/opt/large": "x" * 9, "/opt/small": "x", "/opt/late": "x" * 99})
    _package(tmp_path, "torch", {"/opt/torch": "x" * 50})
    os.utime(tmp_path / "opt/late", (LATER, LATER))
    order: list[str] = []

    def note(_: object, one: changed_files.Todo) -> bool:
        order.append(one.path)
        return True

    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    monkeypatch.setattr(changed_files._Work, "_is_right", note)
    seen = _look(tmp_path)
    assert order == ["/opt/late", "/opt/torch", "/opt/small", "/opt/large"]
    assert (seen.files, seen.of_files, seen.size, seen.of_size) == (4, 4, 159, 159)
    monkeypatch.setattr(changed_files._Work, "run", lambda *_: None)
    nothing = _look(tmp_path)
    assert (nothing.files, nothing.of_files, nothing.size, nothing.of_size) == (0, 4, 0, 159)
    assert nothing.first_left == 2
    assert _look(tmp_path, seconds=0.0).of_files == 4


def test_what_this_user_may_not_read_is_not_reached_and_not_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _package(tmp_path, "tools", {"/usr/bin/a": "a", "/usr/bin/b": "b"})
    trees.write(tmp_path, "/usr/bin/b", "another")
    readable = os.access
    monkeypatch.setattr(os, "access", lambda p, mode: "/bin/b" not in p and readable(p, mode))
    seen = _look(tmp_path)
    assert (seen.changed, seen.gone, seen.files, seen.of_files) == ([], [], 1, 2)


def test_where_no_thread_may_start_one_does_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    _package(tmp_path, "tools", {"/usr/bin/a": "a"})
    assert _look(tmp_path).files == 1


def _wheel(site: Path, name: str, files: dict[str, str], installer: str = "pip") -> None:
    record = ""
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode()
        trees.write(site, path, text)
        record += f"{path},sha256={digest.rstrip('=')},{len(text)}\n"
    record += f"{name}-1.0.dist-info/RECORD,,\n"
    trees.write(site, f"{name}-1.0.dist-info/RECORD", record)
    trees.write(site, f"{name}-1.0.dist-info/METADATA", f"Name: {name}\n")
    trees.write(site, f"{name}-1.0.dist-info/INSTALLER", installer + "\n")


def test_the_files_of_wheels_are_compared_with_record(tmp_path: Path) -> None:
    _wheel(tmp_path, "torch", {"torch/a.py": "a", "../bin/torchrun": "run"})
    listed = list(package_lists.of_wheels([str(tmp_path)], ()))
    assert [one.owner for one in listed] == ["torch==1.0"] * 2
    (tmp_path / "torch/a.py").write_text("another")
    (tmp_path.parent / "bin/torchrun").unlink()
    rules = package_lists.left_out("/")
    seen = changed_files.look("/", listed, lambda _: True, rules, 60.0)
    assert _paths(seen.changed) == [str(tmp_path / "torch/a.py")]
    assert _paths(seen.gone) == [str(tmp_path.parent / "bin/torchrun")]


def test_a_file_of_two_wheels_is_right_as_either_of_them_says(tmp_path: Path) -> None:
    _wheel(tmp_path, "one", {"shared/__init__.py": "one"})
    _wheel(tmp_path, "two", {"shared/__init__.py": "two"})
    listed = list(package_lists.of_wheels([str(tmp_path)], ()))
    rules = package_lists.left_out("/")
    assert changed_files.look("/", listed, lambda _: True, rules, 60.0).changed == []


def test_metadata_with_another_version_than_record_has_is_no_finding(tmp_path: Path) -> None:
    """That of torch 1.11.0 says 1.11.0, and has the sum of a file that says 1.11.0+cu102."""
    built = "Name: torch\nVersion: 1.0+cu102\n"
    _wheel(tmp_path, "torch", {"torch/a.py": "a", "torch-1.0.dist-info/METADATA": built})
    listed = list(package_lists.of_wheels([str(tmp_path)], ()))
    assert [one.path for one in listed] == [str(tmp_path / "torch/a.py")]


def test_the_record_of_a_package_or_of_conda_is_left_to_them(tmp_path: Path) -> None:
    _wheel(tmp_path, "chardet", {"chardet/a.py": "a"})
    _wheel(tmp_path, "pip", {"pip/a.py": "a"}, installer="conda")
    known = [str(tmp_path / "chardet-1.0.dist-info/RECORD")]
    assert list(package_lists.of_wheels([str(tmp_path)], known)) == []


def test_a_wheel_without_record_is_named_unless_a_package_brings_it(tmp_path: Path) -> None:
    for name in ("alone", "packaged"):
        _wheel(tmp_path, name, {})
        (tmp_path / f"{name}-1.0.dist-info/RECORD").unlink()
    known = [str(tmp_path / "packaged-1.0.dist-info/METADATA")]
    found = package_lists.without_record([str(tmp_path)], known)
    assert found == [str(tmp_path / "alone-1.0.dist-info")]
