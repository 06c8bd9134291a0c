"""Test the checks of net plugins in images without HARP: a stray plugin is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unit.validate.gpu_machines import LIB_DIR, Machine, compiled, write
from unit.validate.suites.test_harp import nccl, plugin
from validate.check import FAILED, PASSED, SKIPPED, WARNED

if TYPE_CHECKING:
    from pathlib import Path

STRAY = "/usr/local/lib/libnccl-net.so"
IDS = ("plugin.present", "plugin.abi", "plugin.deps", "plugin.load")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Make an image with NCCL 2.9.9, which accepts v4, and without HARP."""
    one = Machine(tmp_path, monkeypatch)
    one.profile = "plain"
    one.promise("nccl", "2.9.9", cuda="11.3")
    one.lib("libnccl.so.2", nccl("2.9.9", 20909, (4,)), "-ldl")
    write(tmp_path, "/etc/ld.so.conf", "/usr/local/lib\n")
    return one


def stray(machine: Machine, *abis: int, options: tuple[str, ...] = ("-nostdlib",)) -> None:
    compiled(machine.root, STRAY, plugin(*abis), *options)


def outcomes(machine: Machine) -> dict[str, str]:
    return {name: one.outcome for name, one in machine.findings("plugin", static=True).items()}


def test_an_image_without_a_plugin_has_nothing_to_check(machine: Machine) -> None:
    found = machine.findings("plugin", static=True)
    assert {found[name].reason for name in IDS} == {"not-applicable"}
    assert (found["plugin.one"].outcome, found["plugin.one"].measured) == (PASSED, "none")


def test_a_stray_plugin_that_works_is_a_warning(machine: Machine) -> None:
    stray(machine, 4)
    found = machine.findings("plugin", static=True)
    assert [found[name].outcome for name in IDS] == [PASSED] * 4
    one = found["plugin.one"]
    assert one.outcome == WARNED
    assert one.measured == f"{machine.root}{STRAY} (of no package)"
    assert "was left on everyone's path" in one.cause
    assert STRAY in one.remedy


def test_a_plugin_of_a_package_is_a_fact(machine: Machine) -> None:
    stray(machine, 4)
    write(machine.root, "/var/lib/dpkg/info/libnccl-ofi.list", f"/.\n{STRAY}\n")
    one = machine.findings("plugin", static=True)["plugin.one"]
    assert one.outcome == PASSED
    assert "(libnccl-ofi)" in one.measured


def test_a_plugin_that_a_setting_asks_for_is_a_fact(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    stray(machine, 4)
    monkeypatch.setenv("NCCL_NET", "AWS Libfabric")
    assert outcomes(machine)["plugin.one"] == PASSED


def test_a_stray_plugin_of_another_abi_is_named(machine: Machine) -> None:
    stray(machine, 7, 8)
    found = machine.findings("plugin", static=True)
    one = found["plugin.abi"]
    assert one.outcome == WARNED
    assert "the plugin exports v7-v8; NCCL 2.9.9" in one.measured
    assert STRAY in one.cause


def test_a_plugin_of_another_abi_fails_where_it_is_forced(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    stray(machine, 7, 8)
    monkeypatch.setenv("NCCL_NET", "AWS Libfabric")
    assert outcomes(machine)["plugin.abi"] == FAILED


def test_a_stray_plugin_without_its_library_is_named(machine: Machine) -> None:
    compiled(machine.root, "/opt/gone/libgone.so.1", "int gone(void) { return 1; }")
    folder = machine.root / "opt/gone"
    (folder / "libgone.so").symlink_to("libgone.so.1")
    source = plugin(4) + "int gone(void); int use(void) { return gone(); }"
    options = ("-Wl,--no-as-needed", str(folder / "libgone.so.1"))
    compiled(machine.root, STRAY, source, *options)
    (folder / "libgone.so.1").unlink()
    one = machine.findings("plugin", static=True)["plugin.deps"]
    assert one.outcome == WARNED
    assert "it needs" in one.measured
    assert "libgone.so.1" in one.measured


def test_a_plugin_that_is_asked_for_and_not_there_fails(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.lib("libnccl.so.2", nccl("2.14.3", 21403, (5, 6)), "-ldl")
    monkeypatch.setenv("NCCL_NET_PLUGIN", "aws")
    found = machine.findings("plugin", static=True)["plugin.present"]
    assert found.outcome == FAILED
    assert "looks for libnccl-net-aws.so: not found" in found.measured


def test_without_an_nccl_the_checks_rest(machine: Machine) -> None:
    (machine.root / LIB_DIR.lstrip("/") / "libnccl.so.2").unlink()
    stray(machine, 4)
    found = machine.findings("plugin", static=True)
    assert {found[name].outcome for name in (*IDS, "plugin.one")} == {SKIPPED}
    assert found["plugin.abi"].measured == "there is no NCCL"
