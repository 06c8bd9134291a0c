"""Test the files of proofs: they are read as written, and a later result replaces the earlier."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from imagegen.catalog.proofs import add_proofs, as_yaml, read_proofs
from imagegen.catalog.reader import read_catalog
from imagegen.config.payload import Payload
from imagegen.errors import ConfigError
from imagegen.model.validation import Proof
from unit.conftest import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from unit.conftest import Ended

PROOF = Proof(
    matrix="mine",
    cell="debian12",
    at="2026-11-22T12:00:00Z",
    tier="full",
    passed=True,
    image="sha256:1",
    recipe="sha256:2",
    tool="0.1.0",
    pins={"os": "debian12", "rdma": "44.0 rdma-core"},
    suites=("os", "rdma"),
)


def payload(root: Path) -> Payload:
    return Payload((root, REPOSITORY), (REPOSITORY,))


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    failed = replace(PROOF, passed=False, failed=("rdma.libs",), suites=("os",))
    other = replace(PROOF, matrix="other", recipe="", pins={"os": "debian13"})
    written = add_proofs(payload(tmp_path), tmp_path, [PROOF, failed, other])
    assert [path.name for path in written] == ["mine.yaml", "other.yaml"]
    problems: list[object] = []
    found = read_proofs(Payload((tmp_path,), ()), problems)  # type: ignore[arg-type]
    assert problems == []
    assert sorted(found, key=str) == sorted([PROOF, failed, other], key=str)
    assert PROOF in read_catalog(payload(tmp_path)).proofs


def test_a_later_result_takes_the_place_of_the_same_one(tmp_path: Path) -> None:
    later = replace(PROOF, at="2026-11-23T12:00:00Z", image="sha256:3")
    static = replace(PROOF, tier="static")
    failed = replace(PROOF, passed=False)
    add_proofs(payload(tmp_path), tmp_path, [PROOF, static, failed])
    add_proofs(payload(tmp_path), tmp_path, [later])
    found = read_proofs(Payload((tmp_path,), ()), [])
    assert sorted(found, key=str) == sorted([later, static, failed], key=str)


def test_the_file_is_sorted_and_the_same_every_time() -> None:
    two = replace(PROOF, cell="a")
    assert as_yaml([PROOF, two]) == as_yaml([two, PROOF])
    assert as_yaml([PROOF]).startswith("# Images that were built and validated")


def test_a_wrong_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "proofs").mkdir()
    (tmp_path / "proofs/mine.yaml").write_text("proofs: [{cell: a}]\n")
    with pytest.raises(ConfigError, match="at"):
        read_catalog(payload(tmp_path))
    with pytest.raises(ConfigError):
        add_proofs(payload(tmp_path), tmp_path, [PROOF])


def test_they_are_listed(
    run: Callable[..., Ended], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    failed = replace(PROOF, cell="debian13", passed=False, failed=("rdma.libs",))
    add_proofs(payload(tmp_path), tmp_path, [PROOF, failed])
    text = run("catalog", "--proven").out
    lines = [line for line in text.splitlines() if line.startswith("mine/")]
    assert "passed" in lines[0]
    assert "failed: rdma.libs" in lines[1]
    found = json.loads(run("catalog", "--proven", "--format", "json").out)
    assert {"mine"} <= {one["matrix"] for one in found}
