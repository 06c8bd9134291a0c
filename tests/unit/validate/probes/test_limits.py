"""Test what the kernel says of a container's limits and capabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unit.validate import trees
from validate.probes import limits

if TYPE_CHECKING:
    from pathlib import Path


def test_capabilities_are_decoded(tmp_path: Path) -> None:
    trees.write(tmp_path, "/proc/self/status", "Name:\tx\nCapEff:\t0000000000084000\n")
    assert limits.capabilities(str(tmp_path)) == ["IPC_LOCK", "SYS_PTRACE"]


def test_control_group_limits_that_are_none_are_left_out(tmp_path: Path) -> None:
    top = "/sys/fs/cgroup"
    trees.write(tmp_path, f"{top}/cpu.max", "200000 100000")
    trees.write(tmp_path, f"{top}/memory.max", "max")
    trees.write(tmp_path, f"{top}/memory/memory.limit_in_bytes", "9223372036854771712")
    assert limits.control_group(str(tmp_path)) == {"cpus": "200000 100000"}


@pytest.mark.parametrize(
    ("number", "text"),
    [(-1, "unlimited"), (65536, "64 KiB"), (64 << 20, "64 MiB"), (3 << 29, "1.5 GiB"), (5, "5 B")],
)
def test_bytes_are_said_in_words(number: int, text: str) -> None:
    assert limits.bytes_in_words(number) == text
