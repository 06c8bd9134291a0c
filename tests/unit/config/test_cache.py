"""Test the cache of what the last run read: it equals the files, and is the user's own."""

from __future__ import annotations

import os
import pickle
import sys
from typing import TYPE_CHECKING, NoReturn

import pytest

from imagegen.catalog.reader import read_catalog
from imagegen.config.cache import MOST_KEPT, remembered
from imagegen.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.model.catalog import Catalog
    from unit.conftest import Overlay


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return the path of the user's cache folder, which does not exist yet."""
    return tmp_path / "cache"


def read(overlay: Overlay, home: Path) -> Catalog:
    environ = {"XDG_CACHE_HOME": str(home)}
    payload = overlay.payload
    return remembered("catalog", payload.catalog_files(), lambda: read_catalog(payload), environ)


def kept(home: Path) -> list[Path]:
    return sorted((home / "imagegen").glob("*"))


def parsed(*_: object, **__: object) -> NoReturn:
    raise AssertionError("the files were parsed again")


def test_the_second_time_nothing_is_parsed(
    overlay: Overlay, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = read(overlay, home)
    assert vars(first) == vars(overlay.catalog)
    monkeypatch.setattr(sys.modules[__name__], "read_catalog", parsed)
    assert vars(read(overlay, home)) == vars(first)
    assert [path.stat().st_mode & 0o777 for path in (home / "imagegen", *kept(home))] == [
        0o700,
        0o600,
    ]


def test_a_changed_file_and_a_new_one_are_seen(overlay: Overlay, home: Path) -> None:
    read(overlay, home)
    overlay.os("debian12", "12", "notes: [changed]\n")
    assert read(overlay, home).os["debian12"].notes == ("changed",)
    overlay.os("debian14", "14")
    assert set(read(overlay, home).os) == {"debian12", "debian13", "debian14"}


def test_a_wrong_file_is_told_each_time(overlay: Overlay, home: Path) -> None:
    overlay.os("debian12", "12", "colour: red\n")
    for _ in range(2):
        with pytest.raises(ConfigError, match="colour"):
            read(overlay, home)
    assert kept(home) == []


def test_files_are_named_as_this_directory_sees_them(
    overlay: Overlay, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = read(overlay, home).os["debian12"].file
    monkeypatch.chdir(overlay.root)
    assert (away, read(overlay, home).os["debian12"].file) == (
        f"{overlay.root}/dockerfiles/os/debian12.yaml",
        "dockerfiles/os/debian12.yaml",
    )


@pytest.mark.parametrize("what", [b"", b"no pickle", pickle.dumps(("cells", {}))])
def test_what_is_broken_is_read_and_written_anew(
    overlay: Overlay, home: Path, what: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = read(overlay, home)
    (file,) = kept(home)
    file.write_bytes(what)
    assert vars(read(overlay, home)) == vars(first)
    monkeypatch.setattr(sys.modules[__name__], "read_catalog", parsed)
    assert vars(read(overlay, home)) == vars(first)


class Trap:
    """Stand for a file of another user: to unpickle it would run its code."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.sign),)

    def __init__(self, sign: Path) -> None:
        self.sign = sign


def test_what_others_may_write_is_not_unpickled(overlay: Overlay, home: Path) -> None:
    read(overlay, home)
    (file,) = kept(home)
    sign = home / "obeyed"
    file.write_bytes(pickle.dumps(Trap(sign)))
    file.chmod(0o666)
    assert set(read(overlay, home).os) == {"debian12", "debian13"}
    assert not sign.exists()


def test_a_link_is_not_followed(overlay: Overlay, home: Path) -> None:
    read(overlay, home)
    (file,) = kept(home)
    sign = home / "obeyed"
    elsewhere = home / "elsewhere"
    elsewhere.write_bytes(pickle.dumps(Trap(sign)))
    file.unlink()
    file.symlink_to(elsewhere)
    assert set(read(overlay, home).os) == {"debian12", "debian13"}
    assert not sign.exists()


def test_a_folder_that_others_may_write_to_is_left_alone(overlay: Overlay, home: Path) -> None:
    (home / "imagegen").mkdir(parents=True)
    (home / "imagegen").chmod(0o777)
    assert set(read(overlay, home).os) == {"debian12", "debian13"}
    assert kept(home) == []


def test_nothing_is_made_in_the_home_of_somebody_else(
    overlay: Overlay, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert set(read(overlay, home).os) == {"debian12", "debian13"}
    assert list(home.iterdir()) == []


def test_a_file_where_the_folder_should_be_is_no_error(overlay: Overlay, home: Path) -> None:
    home.write_text("")
    assert set(read(overlay, home).os) == {"debian12", "debian13"}


def test_only_the_last_few_are_kept(overlay: Overlay, home: Path) -> None:
    for number in range(MOST_KEPT + 2):
        overlay.os("debian12", "12", f"notes: [the {number}th]\n")
        read(overlay, home)
    assert len(kept(home)) == MOST_KEPT
