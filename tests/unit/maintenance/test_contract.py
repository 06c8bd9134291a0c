"""Test what a host lacks for an image, on trees of files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from imagegen.maintenance.contract import machine, missing

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.model.launch import Contract

CONTRACT: Contract = {
    "driver": ">=450.80.02",
    "devices": ["/dev/infiniband"],
    "hugepages": {"size": "1Gi", "per_gpu": 5, "more": 10},
    "mounts": [{"name": "tfabric", "host": "/usr/local/tfabric/tools/", "path": "/t"}],
}
COMMANDS = {
    "driver": "install it",
    "toolkit": "get the toolkit",
    "device": "modprobe mlx5_ib",
    "hugepages": "hugepages={pages}",
    "mount": "harp_setup.sh",
}
VERSION = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {}  Thu Jan 1 2026\n"


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """Make a host that has everything for 8 GPUs."""
    driver = tmp_path / "proc/driver/nvidia"
    for number in range(8):
        (driver / "gpus" / f"0000:0{number}:00.0").mkdir(parents=True)
    (driver / "version").write_text(VERSION.format("535.104.05"))
    (tmp_path / "dev/infiniband").mkdir(parents=True)
    pages = tmp_path / "sys/kernel/mm/hugepages/hugepages-1048576kB"
    pages.mkdir(parents=True)
    (pages / "nr_hugepages").write_text("50\n")
    (tmp_path / "usr/local/tfabric/tools").mkdir(parents=True)
    return tmp_path


def lost(root: Path, gpus: int = 0, runtimes: tuple[str, ...] | None = ("nvidia",)) -> list[str]:
    found = missing(CONTRACT, machine(runtimes, root), gpus, COMMANDS)
    assert all(one.hint for one in found if one.level == "fail")
    return [f"{one.detail}; {one.hint}" for one in found if one.level != "ok"]


def test_a_host_that_has_everything(host: Path) -> None:
    assert lost(host) == []
    assert len(missing(CONTRACT, machine(("nvidia",), host), 0, COMMANDS)) == 4


def test_an_old_driver_and_none(host: Path) -> None:
    version = host / "proc/driver/nvidia/version"
    version.write_text(VERSION.format("418.87.01"))
    assert lost(host) == ["the driver is 418.87.01, the image needs >=450.80.02; install it"]
    version.unlink()
    assert lost(host) == ["no GPU driver here, the image needs >=450.80.02; install it"]


def test_the_open_kernel_module_has_a_version_too(host: Path) -> None:
    text = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.10  Release\n"
    (host / "proc/driver/nvidia/version").write_text(text)
    assert machine(None, host).driver == "570.10"


def test_an_engine_without_the_runtime(host: Path) -> None:
    assert lost(host, runtimes=("runc",)) == [
        "the engine has no NVIDIA runtime; get the toolkit",
    ]
    assert lost(host, runtimes=None) == []


def test_devices_and_folders(host: Path) -> None:
    (host / "dev/infiniband").rmdir()
    (host / "usr/local/tfabric/tools").rmdir()
    assert lost(host) == [
        "/dev/infiniband is missing on this host; modprobe mlx5_ib",
        "/usr/local/tfabric/tools/ is missing on this host; harp_setup.sh",
    ]


def test_huge_pages_go_by_the_gpus(host: Path) -> None:
    pages = host / "sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages"
    pages.write_text("20\n")
    assert lost(host, gpus=2) == []
    assert lost(host, gpus=4) == ["20 huge pages of 1Gi, 30 needed for 4 GPUs; hugepages=30"]
    assert lost(host) == ["20 huge pages of 1Gi, 50 needed for 8 GPUs; hugepages=50"]


def test_a_contract_that_asks_nothing_of_the_host(tmp_path: Path) -> None:
    assert missing({"caps": ["SYS_PTRACE"]}, machine(None, tmp_path), 0, COMMANDS) == []
