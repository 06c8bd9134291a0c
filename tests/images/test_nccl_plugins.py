"""Real NCCLs of four ages and net plugins of three: who accepts whom, in images with the wheels.

What NCCL accepts is read from its bytes by `validate`; here NCCL itself is asked as well, where it
opens a plugin without a GPU (before 2.22).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import closing
from functools import cache
from typing import TYPE_CHECKING, Any

import nccl_parts
import pytest
from command_line import command_line_in
from nccl_parts import at_hand, on_disk
from zoo_keeper import BASES, Keeper, ids

from imagegen.engine.client import Engine, connect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

WHEELS = {
    "2.14.3": "nvidia-nccl-cu11==2.14.3",
    "2.18.3": "nvidia-nccl-cu12==2.18.3",
    "2.21.5": "nvidia-nccl-cu12==2.21.5",
    "2.27.7": "nvidia-nccl-cu12==2.27.7",
}
ACCEPTS = {
    "2.14.3": {4, 5, 6},
    "2.18.3": {4, 5, 6},
    "2.21.5": {5, 6, 7, 8},
    "2.27.7": {6, 7, 8, 9, 10},
}
"""Which versions of the plugin's table. Source: the tags of NVIDIA/nccl."""

PLUGINS = (4, 6, 8)
LOADS_EARLY = ("2.14.3", "2.18.3", "2.21.5")
PAIRS = [(release, abi) for release in WHEELS for abi in PLUGINS]

# NCCL closes a plugin that it does not accept; of one that it takes at once its log says nothing.
OPEN = """
import ctypes, pathlib, sys
ctypes.CDLL(sys.argv[1]).ncclGetUniqueId(ctypes.create_string_buffer(128))
print("kept:", "libnccl-net" in pathlib.Path("/proc/self/maps").read_text())
"""


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    connected = connect()
    with closing(connected.api):
        yield connected


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("parts")


@pytest.fixture(scope="module")
def keeper(engine: Engine, parts: Path) -> Iterator[Keeper]:
    made = Keeper(engine, parts)
    yield made
    made.clean()


@pytest.fixture(scope="module")
def small(keeper: Keeper, tmp_path_factory: pytest.TempPathFactory) -> str:
    run = command_line_in(tmp_path_factory.mktemp("cpu"))
    arguments = ("build", "--matrix", "cpu", "debian13-rdma-core", "--format", "json")
    (row,) = run(*arguments, seconds=1500).result
    return keeper.small(row["image"])


def nccl_image(keeper: Keeper, parts: Path, on: str, release: str, promised: str) -> str:
    """An image with the wheel of a release, installed by the image's own pip."""
    wheel = nccl_parts.wheel_file(parts, WHEELS[release])
    claim = (BASES / "nccl/claim.py").read_bytes()
    files = [at_hand("claim.py", claim), at_hand("release", promised.encode())]
    return keeper.make(BASES / "nccl", on, files, [on_disk(f"wheels/{wheel.name}", wheel)])


@pytest.fixture(scope="module")
def with_nccl(keeper: Keeper, parts: Path, small: str) -> Callable[[str], str]:
    """Such an image for each release, made once."""
    return cache(lambda release: nccl_image(keeper, parts, small, release, release))


@pytest.fixture(scope="module")
def report_on(
    keeper: Keeper, parts: Path, with_nccl: Callable[[str], str]
) -> Callable[[str, int], dict[str, Any]]:
    """What `validate` says of a release with a plugin."""

    def look(release: str, abi: int) -> dict[str, Any]:
        files = [at_hand("libnccl-net.so", nccl_parts.plugin(parts, abi))]
        ref = keeper.make(BASES / "plugin", with_nccl(release), files)
        return keeper.look(ref, ["--static", "--only", "nccl,harp"])

    return look


def measured(report: dict[str, Any], check_id: str) -> str:
    return next(str(c["measured"]) for c in report["checks"] if c["id"] == check_id)


@pytest.mark.parametrize(("release", "abi"), PAIRS)
def test_what_nccl_accepts_is_read_from_its_bytes(
    report_on: Callable[[str, int], dict[str, Any]], release: str, abi: int
) -> None:
    report = report_on(release, abi)
    accepted = ACCEPTS[release]
    assert ids(report, "error") == []
    assert ids(report, "failed") == ([] if abi in accepted else ["plugin.abi"])
    text = f"NCCL {release}{{}} accepts v{min(accepted)}-v{max(accepted)}"
    said = measured(report, "plugin.abi")
    assert text.format("") in said or re.search(text.format(r" in \S+"), said), said
    assert "nccl.version" in ids(report, "passed")
    assert ("plugin.load" in ids(report, "passed")) == (abi in accepted and release in LOADS_EARLY)


@pytest.mark.parametrize(
    ("release", "abi"), [(release, abi) for release, abi in PAIRS if release in LOADS_EARLY]
)
def test_nccl_itself_says_the_same(parts: Path, release: str, abi: int) -> None:
    library = nccl_parts.nccl_library(parts, WHEELS[release])
    folder = parts / f"plugin-{abi}"
    folder.mkdir(exist_ok=True)
    (folder / "libnccl-net.so").write_bytes(nccl_parts.plugin(parts, abi))
    env = {**os.environ, "LD_LIBRARY_PATH": str(folder), "NCCL_DEBUG": "INFO"}
    env |= {"NCCL_DEBUG_SUBSYS": "INIT,NET", "NCCL_SOCKET_IFNAME": "lo"}
    argv = [sys.executable, "-c", OPEN, str(library)]
    ended = subprocess.run(argv, env=env, capture_output=True, text=True, check=True)
    assert f"kept: {abi in ACCEPTS[release]}" in ended.stdout, ended.stdout


def test_a_second_nccl_is_told_and_judged_too(keeper: Keeper, parts: Path, small: str) -> None:
    """PyTorch's wheel brings 2.18.3, the system has 2.21.5: a v4 plugin works for one only."""
    other = nccl_parts.nccl_library(parts, WHEELS["2.21.5"])
    files = [at_hand("libnccl-net.so", nccl_parts.plugin(parts, 4))]
    large = [on_disk("libnccl.so.2.21.5", other)]
    both = nccl_image(keeper, parts, small, "2.18.3", promised="2.21.5")
    ref = keeper.make(BASES / "plugin", both, files, large)
    report = keeper.look(ref, ["--static", "--only", "nccl,harp"])
    assert "nccl.copies" in ids(report, "warned")
    assert ids(report, "failed") == ["plugin.abi"]
    said = measured(report, "plugin.abi")
    assert re.search(
        r"NCCL 2\.21\.5 in \S*/lib/x86_64-linux-gnu/libnccl\.so\.2 accepts v5-v8", said
    )
    assert "2.18.3" not in said
