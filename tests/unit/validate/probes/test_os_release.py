"""Test how /etc/os-release is parsed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unit.validate import trees
from validate.probes.os_release import read_os_release

if TYPE_CHECKING:
    from pathlib import Path


def test_os_release_drops_quotes_and_comments(tmp_path: Path) -> None:
    trees.write(tmp_path, "/etc/os-release", '# x=1\nID=debian\nVERSION_ID="12"\n\n')
    assert read_os_release(str(tmp_path)) == {"ID": "debian", "VERSION_ID": "12"}
