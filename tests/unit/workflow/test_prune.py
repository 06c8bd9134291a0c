"""Test the page of `imagegen prune`: what it removes, and what a dry run keeps."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from imagegen.config.state import state_folder
from imagegen.engine import client
from imagegen.engine.images.engine_contents import EngineContents, KeptImage
from imagegen.inspection.sbom_files import sbom_path
from imagegen.journal.locks import cell_lock_path, engine_locks, holding_lock
from imagegen.model.labels import LABEL_CELL, LABEL_MATRIX, LABEL_TITLE
from imagegen.workflow import prune as page

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from imagegen.engine.client import Engine
    from unit.conftest import Ended


def image(letter: str, matrix: str = "cpu") -> KeptImage:
    labels = {LABEL_MATRIX: matrix, LABEL_CELL: letter, LABEL_TITLE: f"imagegen/{matrix}:{letter}"}
    return KeptImage(f"sha256:{letter * 64}", (), labels, 5)


@pytest.fixture
def removed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record what is removed of two images without a tag, a stopped container and old cache."""
    found = EngineContents((image("a"), image("b", "other")), frozenset(), ("imagegen-0",))
    said: list[str] = []

    def remove(_: Engine, name: str) -> bool:
        said.append(name)
        return True

    def prune_cache(_: Engine, days: int) -> int:
        said.append(f"cache of {days} days")
        return 7

    monkeypatch.setattr(client, "connect", lambda: cast("Engine", object()))
    monkeypatch.setattr(client, "engine_machine", lambda _: SimpleNamespace(id="one"))
    monkeypatch.setattr(page, "engine_contents", lambda *_: found)
    monkeypatch.setattr(page, "remove_image", remove)
    monkeypatch.setattr(page, "remove_container", remove)
    monkeypatch.setattr(page, "prune_cache", prune_cache)
    monkeypatch.setattr(page, "build_cache", lambda _: ())
    return said


def bill(letter: str) -> Path:
    path = sbom_path(state_folder(), f"sha256:{letter * 64}", "spdx")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}")
    return path


def test_images_containers_bills_and_cache_go(
    removed: list[str], run: Callable[..., Ended]
) -> None:
    path = bill("a")
    ended = run("prune", "--cache-days", "3")
    assert removed == ["imagegen-0", f"sha256:{'a' * 64}", f"sha256:{'b' * 64}", "cache of 3 days"]
    assert not path.exists()
    assert ended.out.splitlines()[-3:] == [
        "container imagegen-0: stopped, and not needed",
        f"sbom of {'a' * 12}: its image does not exist, or is removed now",
        "2 images with 10 B and 7 B of cache went",
    ]


def test_a_dry_run_removes_nothing(removed: list[str], run: Callable[..., Ended]) -> None:
    path = bill("a")
    result = json.loads(run("prune", "--dry-run", "--format", "json").out)
    assert (removed, path.exists()) == ([], True)
    assert (result["dry_run"], result["images_bytes"], result["containers"]) == (
        True,
        10,
        ["imagegen-0"],
    )
    assert result["sboms"] == [f"sha256:{'a' * 64}"]


def test_one_matrix_leaves_containers_and_cache(
    removed: list[str], run: Callable[..., Ended]
) -> None:
    assert run("prune", "--matrix", "other").code == 0
    assert removed == [f"sha256:{'b' * 64}"]


def test_what_is_being_built_stays(removed: list[str], run: Callable[..., Ended]) -> None:
    lock = cell_lock_path(engine_locks("one", state_folder()), "imagegen/cpu:a")
    with holding_lock(lock, lambda _: None):
        run("prune", "--keep-cache")
    assert removed == ["imagegen-0", f"sha256:{'b' * 64}"]
