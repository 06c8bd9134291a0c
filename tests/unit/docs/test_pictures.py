"""Test that the pictures of the documentation are those that `make pictures` makes."""

from __future__ import annotations

import importlib
import re
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest
from pages import PAGES, REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = REPOSITORY / "docs/pictures"
NAMES = sorted(path.name for path in FOLDER.iterdir())


@pytest.fixture(scope="module")
def pictures() -> Iterator[Any]:
    """Import the module that draws, which is in no package."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(REPOSITORY / "docs/drawing")
        patch.chdir(REPOSITORY)
        yield importlib.import_module("pictures")


def test_every_picture_is_drawn_and_shown(pictures: Any) -> None:
    assert sorted(pictures.PICTURES) == NAMES
    shown = {
        name for page in PAGES for name in re.findall(r"pictures/([a-z-]+\.svg)", page.read_text())
    }
    assert shown == {*NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_is_of_this_source(pictures: Any, name: str) -> None:
    drawn = pictures.draw(name)
    assert drawn == (FOLDER / name).read_text(), "make pictures"
    assert drawn == pictures.draw(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_needs_nothing_from_the_network(name: str) -> None:
    text = (FOLDER / name).read_text()
    ElementTree.fromstring(text)
    assert {*re.findall(r"https?://[^\s\"'()<]+", text)} <= {"http://www.w3.org/2000/svg"}
