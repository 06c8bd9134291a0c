"""Test whether a container has finished starting."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from unit.validate import trees
from validate.probes import entrypoint

if TYPE_CHECKING:
    from pathlib import Path


def test_a_container_is_starting_while_process_1_is_the_entrypoint(tmp_path: Path) -> None:
    trees.write(tmp_path, "/proc/1/cmdline", "/bin/sh\0/usr/local/bin/imagegen-entrypoint\0bash\0")
    assert entrypoint.starting(str(tmp_path))
    before = time.monotonic()
    entrypoint.await_start(str(tmp_path), 0.2)
    assert time.monotonic() - before >= 0.2
    trees.write(tmp_path, "/proc/1/cmdline", "/bin/sh\0/usr/sbin/sshd\0-De\0")
    assert entrypoint.starting(str(tmp_path))
    trees.write(tmp_path, "/proc/1/cmdline", "bash\0")
    assert not entrypoint.starting(str(tmp_path))
    assert not entrypoint.starting(str(tmp_path / "nowhere"))


def test_the_environment_of_the_first_process(tmp_path: Path) -> None:
    trees.write(tmp_path, "/proc/1/environ", "PATH=/bin\0NCCL_DEBUG=INFO\0\0")
    assert entrypoint.environment_at_start(str(tmp_path)) == {
        "PATH": "/bin",
        "NCCL_DEBUG": "INFO",
    }
    for pid in ("1", "self"):
        (tmp_path / f"proc/{pid}/ns").mkdir(parents=True)
        (tmp_path / f"proc/{pid}/ns/mnt").symlink_to(f"mnt:[{pid}]")
    assert entrypoint.environment_at_start(str(tmp_path)) == {}
