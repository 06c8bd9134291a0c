"""Test `validate --peers` in one of two containers, and `validate --hosts` from here."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from one_job import KEYS, one_job
from outside import from_outside, verdicts
from running_image import SLEEP, said

from imagegen.engine.containers.containers import Container, LaunchSpec, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from imagegen.engine.client import Engine

PEERS = ("login", "image", "env", "limits", "daemon", "ranks", "allreduce")


@pytest.fixture(scope="module")
def pair(engine: Engine, cpu_family: dict[str, str]) -> Iterator[tuple[Container, Container]]:
    """Start `left` and `right`; each knows the key that the other made at its start."""
    with one_job(engine, cpu_family["debian12-none"], ("left", "right")) as (left, right):
        yield left, right


def peers(container: Container, names: str, code: int) -> dict[str, Any]:
    """Return the results of the suite `peers` in the container, by id."""
    argv = ["validate", "--only", "peers", "--peers", names, "--json", "-"]
    end = container.exec(argv, 200)
    assert end.code == code, end.out + end.err
    return {one["id"].partition(".")[2]: one for one in json.loads(end.out)["checks"]}


def failed(found: dict[str, Any]) -> list[str]:
    return [name for name, one in found.items() if one["outcome"] == "failed"]


def test_two_hosts_are_one_job(pair: tuple[Container, Container]) -> None:
    found = peers(pair[0], "left,right", 0)
    assert {name: one["outcome"] for name, one in found.items()} == dict.fromkeys(PEERS, "passed")
    assert found["login"]["measured"] == "left is left, right is right"
    assert found["ranks"]["measured"] == "2 ranks on left, right"
    assert found["allreduce"]["measured"] == "3 on each of 2 ranks"


def test_a_peer_that_does_not_know_the_key(pair: tuple[Container, Container]) -> None:
    left, right = pair
    said(right, "mv", KEYS, KEYS + ".off")
    try:
        found = peers(left, "right", 1)
    finally:
        said(right, "mv", KEYS + ".off", KEYS)
    assert failed(found) == ["login"]
    assert "Permission denied" in found["login"]["measured"]
    assert "authorized_keys" in found["login"]["remedy"]
    assert {found[name]["reason"] for name in PEERS[1:]} == {"blocked-by"}


def test_a_peer_whose_sessions_do_not_find_the_daemon(pair: tuple[Container, Container]) -> None:
    left, right = pair
    said(right, "sh", "-c", "cp /etc/environment /tmp/kept; : > /etc/environment")
    said(right, "mv", "/usr/bin/orted", "/usr/bin/orted.off")
    try:
        found = peers(left, "right", 1)
    finally:
        said(right, "mv", "/usr/bin/orted.off", "/usr/bin/orted")
        said(right, "sh", "-c", "cat /tmp/kept > /etc/environment; rm /tmp/kept")
    assert failed(found) == ["daemon"]
    assert found["daemon"]["measured"] == "no orted on right"
    assert (found["ranks"]["reason"], found["ranks"]["measured"]) == ("blocked-by", "peers.daemon")
    assert found["env"]["outcome"] == "warned"


def test_a_peer_of_another_image_or_of_none(
    pair: tuple[Container, Container], engine: Engine
) -> None:
    del engine
    left, right = pair
    said(right, "mv", "/etc/imagegen/image.json", "/etc/imagegen/off")
    try:
        found = peers(left, "right,nobody", 1)
        assert failed(found) == ["login"]
        assert found["login"]["measured"].startswith("nobody: `ssh` ended with exit code 255")
        found = peers(left, "right", 1)
    finally:
        said(right, "mv", "/etc/imagegen/off", "/etc/imagegen/image.json")
    assert failed(found) == ["image"]
    assert found["ranks"]["reason"] == "blocked-by"


@pytest.mark.parametrize(
    "tier", [("--static",), pytest.param((), marks=pytest.mark.long)], ids=["static", "full"]
)
def test_the_same_verdicts_from_outside(
    pair: tuple[Container, Container], tier: tuple[str, ...]
) -> None:
    """Use the container's own checks, and ours, which bring a Python along."""
    left, _ = pair
    inside = json.loads(left.exec(["validate", "--json", "-", *tier], 300).out)
    host = f"docker://{left.name}"
    (own,) = from_outside("--hosts", host, *tier)["hosts"]
    (brought,) = from_outside("--hosts", host, "--bring", *tier)["hosts"]
    assert (own["how"], brought["how"]) == ("its own validate", "checks brought along")
    assert verdicts(own) == verdicts(brought) == verdicts(inside)
    assert left.exec(["sh", "-c", "ls -d /tmp/imagegen-validate-*"], 30).code != 0


def test_a_container_without_any_python(engine: Engine, debian_base: str, tmp_path: Path) -> None:
    recipe = {
        "schema": 1,
        "os": {"ID": "debian", "VERSION_ID": "12", "arch": "x86_64", "glibc": "2.36"},
        "components": {},
        "suites": ["os"],
    }
    expect = tmp_path / "image.json"
    expect.write_text(json.dumps(recipe))
    with running(engine, LaunchSpec(debian_base, SLEEP)) as container:
        host = f"docker://{container.name}"
        arguments = ("--hosts", host, "--static", "--expect", str(expect))
        (report,) = from_outside(*arguments)["hosts"]
    found = verdicts(report)
    assert found["os.release"] == found["os.glibc"] == found["os.elf-deps"] == ("passed", "")
    assert report["counts"]["failed"] == 0
