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
    trees.write(tmp_path, "/proc/1/cmdline", "bash\0")
    assert not entrypoint.starting(str(tmp_path))
    assert not entrypoint.starting(str(tmp_path / "nowhere"))
