"""Test that a family without changes is recognised from the last run and the engine's images."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import pytest

from imagegen.builder import up_to_date as standing
from imagegen.builder.up_to_date import (
    ExpectedImage,
    expected_image,
    is_of_recipe,
    records_if_unchanged,
)
from imagegen.engine import client
from imagegen.engine.images.local_image import LocalImage
from imagegen.errors import EngineError
from imagegen.journal.journal import open_journal
from imagegen.model.labels import LABEL_BASE, LABEL_RECIPE
from imagegen.workflow.project import Project
from unit.conftest import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from unit.conftest import Ended, Overlay

BASE = LocalImage("sha256:base", ("imagegen/base:debian12",), {}, 1)
CELL = ExpectedImage("small/a", "small:a", "sha256:recipe", BASE.tags[0])


def image(cell: ExpectedImage, base: str = BASE.id, **changed: str) -> LocalImage:
    labels = {LABEL_RECIPE: changed.get("recipe", cell.digest), LABEL_BASE: base}
    return LocalImage(f"sha256:{cell.tag}".ljust(40, "0"), (cell.tag,), labels, 7)


@pytest.fixture
def stock(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Set which images the engine has."""

    def says(*images: LocalImage, bases: Mapping[str, LocalImage] | None = None) -> None:
        found = {BASE.tags[0]: BASE} if bases is None else bases
        monkeypatch.setattr(standing, "labelled_images", lambda *_: (images, found))

    return says


def test_an_image_stands_on_its_recipe_and_on_the_base_of_now() -> None:
    made = image(CELL)
    assert is_of_recipe(made, CELL.digest, BASE.id)
    assert is_of_recipe(made, CELL.digest, "")
    assert not is_of_recipe(made, "sha256:other", BASE.id)
    assert not is_of_recipe(made, CELL.digest, "sha256:moved")


def test_all_stand_or_nothing_is_said(stock: Callable[..., None]) -> None:
    other = ExpectedImage("small/b", "small:b", "sha256:second", BASE.tags[0])
    stock(image(CELL), image(other))
    records = records_if_unchanged([CELL, other])
    assert [(one.cell_id, one.outcome, one.size_bytes) for one in records] == [
        ("small/a", "up-to-date", 7),
        ("small/b", "up-to-date", 7),
    ]
    stock(image(CELL))
    assert records_if_unchanged([CELL, other]) == ()
    stock(image(CELL), image(other, recipe="sha256:before"))
    assert records_if_unchanged([CELL, other]) == ()
    stock(image(CELL), image(other, base="sha256:before"))
    assert records_if_unchanged([CELL, other]) == ()


def test_a_base_that_is_gone_asks_for_no_build(stock: Callable[..., None]) -> None:
    stock(image(CELL), bases={})
    assert len(records_if_unchanged([CELL])) == 1


def test_an_engine_that_only_the_sdk_reaches_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standing, "labelled_images", lambda *_: None)
    assert records_if_unchanged([CELL]) == ()


@pytest.fixture
def no_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> NoReturn:
        raise EngineError.of("the SDK was asked")

    monkeypatch.setattr(client, "connect", refuse)


def no_render(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> NoReturn:
        raise EngineError.of("it was rendered")

    monkeypatch.setattr(Project, "recipes", refuse)


@pytest.fixture
def rendered(
    small: Overlay, no_sdk: None, run: Callable[..., Ended], stock: Callable[..., None]
) -> tuple[ExpectedImage, ...]:
    """Return the cells of a matrix that an earlier run rendered and that the engine has."""
    del small, no_sdk
    found = tuple(map(expected_image, Project().recipes(Project().family("small"))))
    stock(bases={})
    assert "the SDK was asked" in run("build", "--matrix", "small").err
    stock(*map(image, found), bases={})
    return found


def test_a_build_of_what_stands_renders_nothing_and_is_in_the_journal(
    rendered: tuple[ExpectedImage, ...], run: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    no_render(monkeypatch)
    ended = run("build", "--matrix", "small")
    assert (ended.code, len(rendered)) == (0, 4)
    assert ended.out.splitlines()[-1].startswith("4 of 4 images ready in 0.")
    latest = open_journal().history(1)[0]
    assert (latest.exit_code, dict(latest.outcomes)) == (0, {"up-to-date": 4})
    assert latest.cells == tuple(cell.cell_id for cell in rendered)


@pytest.mark.usefixtures("rendered")
@pytest.mark.parametrize(
    "file",
    [
        "dockerfiles/components/delta/install.j2",
        "dockerfiles/components/beta/files/etc/beta.conf",
        "dockerfiles/build-env/more.sh",
        "dockerfiles/os/debian12.yaml",
        "matrices/small.yaml",
        "artifacts.yaml",
    ],
)
def test_after_a_change_it_is_rendered(
    small: Overlay, run: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    path = small.root / file
    small.write(file, (path.read_text() if path.exists() else "") + "\n")
    no_render(monkeypatch)
    assert "it was rendered" in run("build", "--matrix", "small").err


@pytest.mark.usefixtures("rendered")
@pytest.mark.parametrize(
    "asked", [["debian12-none"], ["--force"], ["--measured"], ["--locked"]], ids=" ".join
)
def test_who_asks_for_more_is_not_told_from_memory(
    run: Callable[..., Ended], asked: list[str]
) -> None:
    assert run("build", "--matrix", "small").code == 0
    assert run("build", "--matrix", "small", *asked).code != 0


def test_the_checks_that_travel_into_images_are_watched_too() -> None:
    project = Project()
    files = project.payload.recipe_files("cpu", project.trees())
    assert REPOSITORY / "validate/suites/test_rdma.py" in files
    assert REPOSITORY / "matrices/cpu.yaml" in files
    assert project.payload.recipe_files("matrices/cpu.yaml", project.trees()) == ()
