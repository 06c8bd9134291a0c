"""Test which image a user means by a name."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from imagegen.engine.images import local_images
from imagegen.engine.images.local_image import LocalImage
from imagegen.errors import NothingSelectedError
from imagegen.workflow.image_name import image_of

if TYPE_CHECKING:
    from imagegen.engine.client import Engine
    from unit.conftest import Overlay

ENGINE = cast("Engine", SimpleNamespace())
TAG = "imagegen/small:debian12-1.13.1-none"


@pytest.fixture
def known(small: Overlay, monkeypatch: pytest.MonkeyPatch) -> dict[str, LocalImage]:
    """Set the images of the engine by name; verbs find the matrix `small`."""
    del small
    found: dict[str, LocalImage] = {}
    monkeypatch.setattr(local_images, "find", lambda _, ref: found.get(ref))
    return found


def test_an_image_of_that_name_comes_before_a_cell(known: dict[str, LocalImage]) -> None:
    known[TAG] = LocalImage("sha256:cell", (TAG,), {}, 1)
    assert image_of(ENGINE, "small/debian12-none", None).id == "sha256:cell"
    known["small/debian12-none"] = LocalImage("sha256:other", (), {}, 1)
    assert image_of(ENGINE, "small/debian12-none", None).id == "sha256:other"


def test_a_cell_that_is_not_built_names_the_command(known: dict[str, LocalImage]) -> None:
    assert not known
    with pytest.raises(NothingSelectedError) as caught:
        image_of(ENGINE, "small/debian12-none", None)
    (problem,) = caught.value.problems
    assert problem.text == f"`small/debian12-none` has no image `{TAG}` on this engine"
    assert problem.hint == "imagegen build --matrix small debian12-none"


def test_a_name_of_nothing_and_one_of_several(known: dict[str, LocalImage]) -> None:
    assert not known
    for name, why in (("nowhere", "matches no cell"), ("small/*", "means 4 cells")):
        with pytest.raises(NothingSelectedError) as caught:
            image_of(ENGINE, name, None)
        (problem,) = caught.value.problems
        assert problem.text == f"`{name}` is neither an image on this engine nor one cell"
        assert why in problem.evidence[0]
