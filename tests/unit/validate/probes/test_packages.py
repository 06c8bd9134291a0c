"""Test the distribution's package database, which knows what a library does not say."""

from __future__ import annotations

from typing import Any

import pytest

from validate.probes import packages
from validate.process import Result


def database(monkeypatch: pytest.MonkeyPatch, search: Result, version: str) -> None:
    """Let `dpkg-query` give these answers."""

    def run(argv: list[str], **_: Any) -> Result:
        assert argv[0] == "dpkg-query"
        if argv[1] == "--search":
            return search
        assert argv[-1] == "python3-torch"
        return Result(argv, 0, version, "")

    monkeypatch.setattr(packages, "run", run)


@pytest.mark.parametrize(
    ("version", "upstream"),
    [("1.13.1+dfsg-4", "1.13.1"), ("1:9.2p1-2+deb12u10", "9.2p1"), ("2.6.0-7", "2.6.0")],
)
def test_the_upstream_version_lies_between_epoch_and_revision(
    monkeypatch: pytest.MonkeyPatch, version: str, upstream: str
) -> None:
    found = Result([], 0, "python3-torch: /usr/lib/torch/__init__.py\n", "")
    database(monkeypatch, found, version)
    assert packages.owner_version("/usr/lib/torch/__init__.py", {}) == upstream


def test_a_file_that_no_package_owns_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    database(monkeypatch, Result([], 1, "", "no path found matching pattern"), "1.0-1")
    assert packages.owner_version("/opt/torch/__init__.py", {}) == ""
