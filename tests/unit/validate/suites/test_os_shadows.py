"""Test libraries that hide one another on the loader's path of a made-up machine."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from unit.validate import trees
from validate.check import FAILED, PASSED, WARNED
from validate.probes import aside

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from validate.check import CheckResult

CHECK = "os.shadowed"


def shadows(root: Path, folder: Path) -> CheckResult:
    return trees.findings(root, "os", trees.expected(folder), static=True)[CHECK]


def preloaded(root: Path, folder: Path) -> CheckResult:
    return trees.findings(root, "os", trees.expected(folder), static=True)["os.preload"]


def test_one_of_each_is_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    root = tmp_path / "root"
    library = trees.write(root, f"{trees.LIB_DIR}/libnccl.so.2.21.5", "nccl")
    (library.parent / "libnccl.so.2").symlink_to(library.name)
    trees.write(root, f"{trees.LIB_DIR}/libcudart.so.11.0", "eleven")
    trees.write(root, f"{trees.LIB_DIR}/libcudart.so.12", "twelve")
    found = shadows(root, tmp_path)
    assert (found.outcome, found.measured) == (
        PASSED,
        "libcudart.so.11.0, libcudart.so.12, libnccl.so.2",
    )


def test_what_hides_another_is_named_in_the_order_of_the_loader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    system = trees.write(root, f"{trees.LIB_DIR}/libibverbs.so.1", "of the image")
    other = trees.write(root, "/opt/hpcx/lib/libibverbs.so.1", "of another stack")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/hpcx/lib")
    found = shadows(root, tmp_path)
    assert found.outcome == WARNED
    assert found.measured == f"libibverbs.so.1 is {other}, which hides {system}"
    assert found.cause == "LD_LIBRARY_PATH names /opt/hpcx/lib"
    assert found.remedy == aside.unset(["LD_LIBRARY_PATH"])


def test_a_folder_of_the_configuration_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    root = tmp_path / "root"
    trees.write(root, "/etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n")
    trees.write(root, "/etc/ld.so.conf.d/other.conf", "/opt/other\n")
    trees.write(root, "/opt/other/libmpi.so.40", "one")
    trees.write(root, f"{trees.LIB_DIR}/libmpi.so.40", "two")
    found = shadows(root, tmp_path)
    assert found.measured.count("libmpi.so.40") == 3
    line = (
        "sed -i -E 's|^ *(include +)?/opt/other/* *$|# &|' /etc/ld.so.conf.d/other.conf; ldconfig"
    )
    assert found.remedy == line
    (root / "etc/ld.so.conf.d/other.conf").rename(root / "etc/ld.so.conf.d/libc.conf")
    line = "mv /opt/other/libmpi.so.40 /opt/other/disabled.libmpi.so.40; ldconfig"
    assert shadows(root, tmp_path).remedy == line


def test_what_is_loaded_into_every_process_has_to_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    trees.write(root, f"{trees.LIB_DIR}/libjemalloc.so.2", "there")
    monkeypatch.setattr("os.environ", {**os.environ, "LD_PRELOAD": "libjemalloc.so.2"})
    assert preloaded(root, tmp_path).outcome == PASSED
    trees.write(root, "/etc/ld.so.preload", "/opt/libhook.so\n")
    monkeypatch.setattr("os.environ", {**os.environ, "LD_PRELOAD": "libgone.so:/opt/x/$LIB/y.so"})
    found = preloaded(root, tmp_path)
    assert found.outcome == WARNED
    lost = "libgone.so in LD_PRELOAD is not there; /opt/libhook.so in /etc/ld.so.preload is not"
    assert found.measured.startswith(lost)
    assert found.remedy.startswith(
        r"unset LD_PRELOAD; sed -i -E 's|/opt/libhook\.so||' /etc/ld.so.preload; "
        "sed -i 's|^LD_PRELOAD=|# &|' /etc/environment   # "
    )


def test_a_place_for_temporary_files_is_a_folder_for_everyone(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "var/tmp").mkdir(parents=True)
    (root / "var/tmp").chmod(0o1777)
    (root / "tmp").symlink_to("/scratch/that/is/not/here")
    found = trees.findings(root, "os", trees.expected(tmp_path), static=True)["os.tmp"]
    assert (found.outcome, found.measured) == (FAILED, "not a folder of mode 1777: /tmp")
    assert found.remedy == "mv /tmp /disabled.tmp && mkdir -p /tmp && chmod 1777 /tmp"
    (root / "tmp").unlink()
    (root / "tmp").mkdir()
    (root / "tmp").chmod(0o1777)
    assert (
        trees.findings(root, "os", trees.expected(tmp_path), static=True)["os.tmp"].outcome
        == PASSED
    )


def test_a_folder_that_has_two_names_is_looked_at_once(tmp_path: Path) -> None:
    root = tmp_path / "root"
    trees.write(root, f"{trees.LIB_DIR}/libz.so.1", "z")
    (root / f"{trees.LIB_DIR}/libgone.so".lstrip("/")).symlink_to("libgone.so.1")
    (root / "lib").symlink_to("usr/lib")
    other = trees.LIB_DIR.replace("/usr/lib", "/lib", 1)
    trees.write(root, "/etc/ld.so.conf", f"{other}\n")
    found = trees.findings(root, "os", trees.expected(tmp_path), static=True)["os.broken-links"]
    assert (found.outcome, found.measured) == (FAILED, f"{other}/libgone.so -> libgone.so.1")
