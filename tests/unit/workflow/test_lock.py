"""Test the page of `imagegen lock`: only images that match their recipes are locked."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from imagegen.builder.up_to_date import Staleness
from imagegen.engine import client
from imagegen.engine.images.local_image import LocalImage
from imagegen.model.labels import LABEL_LOCK
from imagegen.sources.lock_file import CellLock, Lock, SystemLock
from imagegen.workflow import lock as page

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from imagegen.engine.client import Engine
    from imagegen.model.recipe import Recipe
    from imagegen.sources.locked_build import Built
    from unit.conftest import Ended, Overlay


@pytest.fixture
def judge(small: Overlay, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Set why each cell is stale, and what labels its image has."""
    del small
    monkeypatch.setattr(client, "connect", lambda: cast("Engine", object()))

    def call(why: str = "", **labels: str) -> None:
        def judged(_: Engine, recipes: Sequence[Recipe], *, force: bool) -> list[Staleness]:
            assert not force
            image = LocalImage("sha256:one", (), labels, 1)
            return [Staleness(recipe, why, image) for recipe in recipes]

        monkeypatch.setattr(page, "find_stale", judged)

    return call


def test_the_lock_is_written_beside_its_matrix(
    judge: Callable[..., None],
    small: Overlay,
    run: Callable[..., Ended],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judge()
    cells = {"debian12-none": CellLock("debian12", {"alpha": "3.11"}, {})}
    made = Lock("", "small", {"debian12": SystemLock("sha256:base", {"libc6": ("2.36",)})}, cells)
    built: list[str] = []

    def lock_of(_: Engine, images: Sequence[Built], *__: object) -> Lock:
        built.extend(one.image_id for one in images)
        return made

    monkeypatch.setattr(page, "lock_of", lock_of)
    ended = run("lock", "-m", "small", "debian12-none")
    assert (ended.code, built) == (0, ["sha256:one"])
    assert ended.out.splitlines() == [
        "system    cells  packages  wheels  base",
        "debian12  1      1         0       sha256:base",
        "matrices/small.lock.yaml: 1 cell locked",
    ]
    assert "libc6: '2.36'" in (small.root / "matrices/small.lock.yaml").read_text()


@pytest.mark.parametrize(
    ("labels", "why", "text"),
    [
        ({}, "its recipe changed", "`small/debian12-none` is stale: its recipe changed"),
        ({LABEL_LOCK: "x"}, "", "`small/debian12-none` was built from a lock"),
    ],
)
def test_what_is_not_as_its_recipe_says_is_not_locked(
    judge: Callable[..., None],
    run: Callable[..., Ended],
    labels: dict[str, str],
    why: str,
    text: str,
) -> None:
    judge(why, **labels)
    ended = run("lock", "-m", "small", "debian12-none")
    assert (ended.code, ended.err.splitlines()[0]) == (6, f"error: {text}")
    assert "--matrix small debian12-none" in ended.err
