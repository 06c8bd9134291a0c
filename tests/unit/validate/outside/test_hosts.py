"""Test other machines, reached through testinfra."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from validate import cli
from validate.outside.remote import Remote, RemoteError

if TYPE_CHECKING:
    from pathlib import Path


def test_a_command_on_another_host_has_a_limit(tmp_path: Path) -> None:
    remote = Remote("local://")
    assert remote.run("echo $((1 + 1))").out == "2\n"
    assert remote.run("sleep 60", 0.5).code == 124
    remote.put(str(tmp_path / "file"), bytes(range(256)) * 1000)
    assert (tmp_path / "file").read_bytes() == bytes(range(256)) * 1000
    with pytest.raises(RemoteError, match=r"`local://`: `false` ended with exit code 1"):
        remote.run_or_raise("false")


@pytest.mark.parametrize("spec", ["nothing://x", "docker://"])
def test_a_host_that_is_none_is_2_in_words(spec: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--hosts", spec]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"error: `{spec}` ")
    assert "hint: docker://NAME" in err
