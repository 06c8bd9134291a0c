"""The distribution's package database, asked for what a library does not say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from validate.probes.packages import owner_version

if TYPE_CHECKING:
    from pathlib import Path

STUB = """#!/bin/sh
case "$1" in
  --search) {search} ;;
  --show) printf %s '{version}' ;;
esac
"""


def database(folder: Path, search: str, version: str) -> dict[str, str]:
    """An environment whose `dpkg-query` answers as told."""
    stub = folder / "dpkg-query"
    stub.write_text(STUB.format(search=search, version=version))
    stub.chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin"}


@pytest.mark.parametrize(
    ("version", "upstream"),
    [("1.13.1+dfsg-4", "1.13.1"), ("1:9.2p1-2+deb12u10", "9.2p1"), ("2.6.0-7", "2.6.0")],
)
def test_the_upstream_version_is_what_lies_between_epoch_and_revision(
    tmp_path: Path, version: str, upstream: str
) -> None:
    env = database(tmp_path, "echo python3-torch: $2", version)
    assert owner_version("/usr/lib/torch/__init__.py", env) == upstream


def test_a_file_that_no_package_owns_has_no_version(tmp_path: Path) -> None:
    env = database(tmp_path, "echo no path found >&2; exit 1", "1.0-1")
    assert owner_version("/opt/torch/__init__.py", env) == ""
