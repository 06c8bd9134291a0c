"""Test what may not get from this host into a build context."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from imagegen.errors import ConfigError
from imagegen.renderer.context_files import ContextFiles

if TYPE_CHECKING:
    from pathlib import Path

    from unit.conftest import Overlay

FILES = "dockerfiles/components/alpha/files"


def names(overlay: Overlay) -> dict[str, bytes]:
    files = ContextFiles(overlay.payload, overlay.catalog).shared(("alpha",))
    return {one.path: one.data for one in (*files.before, *files.after)}


@pytest.fixture
def folder(overlay: Overlay, tmp_path: Path) -> Path:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/key").write_text("secret")
    return overlay.write(f"{FILES}/own", "own").parent


LEAVING = {
    "absolute": {"x": "{out}/key"},
    "relative": {"x": "../../../../../../../../../../etc/passwd"},
    "folder": {"x": "{out}"},
    "chain": {"b": "{out}/key", "a": "b"},
    "through a folder": {"up": "..", "x": "up/install.j2"},
    "sibling": {"x": "../install.j2"},
    "below": {"sub/x": "{out}/key"},
    "nowhere": {"x": "none"},
    "itself": {"x": "x"},
    "device": {"x": "/dev/zero"},
}
"""Links below `files/`, with where each leads."""


@pytest.mark.parametrize("kind", LEAVING)
def test_a_link_that_leaves_its_folder_is_refused(
    kind: str, overlay: Overlay, folder: Path, tmp_path: Path
) -> None:
    for name, target in LEAVING[kind].items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).symlink_to(target.format(out=tmp_path / "secret"))
    with pytest.raises(ConfigError, match=r"leads out of `.*files`, or nowhere"):
        names(overlay)


@pytest.mark.parametrize("place", [FILES, "dockerfiles/build-env", "dockerfiles/components/alpha"])
def test_a_folder_that_is_a_link_out_of_its_root_is_refused(
    place: str, overlay: Overlay, tmp_path: Path
) -> None:
    path = overlay.root / place
    out = tmp_path / "elsewhere"
    if path.exists():
        path.rename(out)
    else:
        out.mkdir()
        path.parent.mkdir(parents=True, exist_ok=True)
    if place == "dockerfiles/components/alpha":
        (out / "files").mkdir()
    path.symlink_to(out)
    with pytest.raises(ConfigError, match="leads out of"):
        names(overlay)


@pytest.mark.parametrize("absolute", [True, False])
def test_a_link_inside_its_folder_is_followed(
    absolute: bool, overlay: Overlay, folder: Path
) -> None:
    (folder / "x").symlink_to(folder / "own" if absolute else "own")
    assert names(overlay)["alpha/x"] == b"own"


def test_what_is_no_file_is_refused(overlay: Overlay, folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "sub").mkdir()
    (folder / "link").symlink_to("sub")
    (folder / os.fsdecode(b"a\xff")).write_text("x")
    with pytest.raises(ConfigError) as caught:
        names(overlay)
    assert [one.text.rpartition("` ")[2] for one in caught.value.problems] == [
        "has a name that is not UTF-8",
        "is a link to a folder",
        "is no file, no folder and no link",
    ]


def test_the_lock_of_an_editor_is_left_out(overlay: Overlay, folder: Path) -> None:
    (folder / ".#own").symlink_to("user@host.1:2")
    assert names(overlay) == {"alpha/own": b"own"} | {
        name: data for name, data in names(overlay).items() if not name.startswith("alpha/")
    }
