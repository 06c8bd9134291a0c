"""Test check-sources with the real clients: apt in a base and on this host, and this host's pip."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from command_line import CommandLine

NO_ENGINE = {"DOCKER_HOST": "unix:///nonexistent/docker.sock"}
COMPONENT = """\
name: probe
title: what is there and what is not
seconds: 1
suites: [os]
releases:
  - version: "1"
    requires: {os: debian12}
    apt: {hostname: "3.*", hello: "99.*", imagegen-no-such-package: "1"}
    origin: a test
    source: a test
"""
MATRIX = """\
name: probe
tag: "test-probe:{os}"
axes: {os: [debian12]}
components: {probe: any, python: any, validate: any}
"""


def kinds(rows: list[dict[str, Any]]) -> dict[str, set[str]]:
    """Map each kind of source to the states that were found."""
    found: dict[str, set[str]] = {}
    for row in rows:
        found.setdefault(row["kind"], set()).add(row["state"])
    return found


@pytest.mark.parametrize(
    ("environ", "evidence"),
    [({}, "on this engine"), (NO_ENGINE, "to be bootstrapped: bookworm")],
    ids=["in-the-base", "without-an-engine"],
)
def test_all_that_a_cell_is_made_of_can_be_had(
    command_line: CommandLine, debian_base: str, environ: dict[str, str], evidence: str
) -> None:
    del debian_base
    arguments = ("check-sources", "--matrix", "cpu", "debian12-none", "--format", "json")
    ended = command_line(*arguments, environ=environ)
    assert kinds(ended.result) == {"base": {"ok"}, "apt": {"ok"}, "wheel": {"ok"}}
    assert all(row["cells"] == ["debian12-none"] for row in ended.result)
    (base,) = (row for row in ended.result if row["kind"] == "base")
    assert base["evidence"].startswith(evidence)


def test_what_an_archive_does_not_have_is_named(
    command_line: CommandLine, debian_base: str, tmp_path: Path
) -> None:
    del debian_base
    component = tmp_path / "overlay/dockerfiles/components/probe/component.yaml"
    component.parent.mkdir(parents=True)
    component.write_text(COMPONENT)
    (tmp_path / "overlay/matrices").mkdir()
    (tmp_path / "overlay/matrices/probe.yaml").write_text(MATRIX)
    overlay = ("--overlay", str(tmp_path / "overlay"))
    ended = command_line("check-sources", "-m", "probe", *overlay, code=6)
    lines = {line.split()[2]: line for line in ended.out.splitlines()[1:-1]}
    assert lines["hostname=3.*"].startswith("ok ")
    assert lines["hello=99.*"].startswith("missing ")
    assert "has no such package" in lines["imagegen-no-such-package=1"]
    assert lines["pytest==8.3.5"].startswith("ok ")
    assert ended.out.splitlines()[-1].startswith("12 sources of 1 cells: 10 ok, 2 missing")
    assert "error: apt hello=99.* (debian12) cannot be had" in ended.err
    assert "needed by: debian12" in ended.err


def test_an_index_that_is_away_leaves_its_wheels_unknown(
    command_line: CommandLine, debian_base: str
) -> None:
    del debian_base
    arguments = ("check-sources", "-m", "cpu", "debian12-none", "--format", "json")
    ended = command_line(*arguments, environ={"PIP_INDEX_URL": "http://127.0.0.1:9/simple"})
    assert kinds(ended.result)["wheel"] == {"unknown"}
    assert kinds(ended.result)["apt"] == {"ok"}
