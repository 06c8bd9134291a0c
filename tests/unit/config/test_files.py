"""Test files that are written completely or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from imagegen.config.files import write_whole
from imagegen.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


def test_a_file_is_replaced_whole_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "new" / "one.json"
    write_whole(path, b"one")
    write_whole(path, b"two")
    assert [(one.name, one.read_bytes()) for one in path.parent.iterdir()] == [(path.name, b"two")]
    with pytest.raises(ConfigError, match="cannot write"):
        write_whole(path / "below", b"")
