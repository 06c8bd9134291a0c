"""Test where files are read from: an earlier root wins, file by file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from imagegen.config.payload import (
    Payload,
    open_payload,
    shipped_root,
    shown,
)
from imagegen.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from unit.conftest import Overlay


@pytest.fixture
def roots(tmp_path: Path) -> tuple[Path, Path]:
    for root, names in (("one", ("a", "b")), ("two", ("b", "c"))):
        for name in names:
            path = tmp_path / root / "matrices" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{root} {name}")
    return tmp_path / "one", tmp_path / "two"


def test_an_earlier_root_wins_file_by_file(roots: tuple[Path, Path]) -> None:
    payload = Payload(roots, roots)
    tree = [(name, path.read_text()) for name, path in payload.tree("matrices")]
    assert tree == [("a", "one a"), ("b", "one b"), ("c", "two c")]
    assert payload.find("matrices/b") == roots[0] / "matrices/b"
    assert payload.find("matrices/c") == roots[1] / "matrices/c"
    assert payload.find("matrices/d") is None


def test_names_are_sorted_and_leave_hidden_entries_out(roots: tuple[Path, Path]) -> None:
    (roots[1] / "matrices/.hidden").touch()
    (roots[1] / "matrices/__pycache__").mkdir()
    assert Payload(roots, roots).names("matrices") == ("a", "b", "c")
    assert Payload(roots, roots).names("nothing") == ()


def test_compiled_python_does_not_travel(roots: tuple[Path, Path]) -> None:
    (roots[0] / "matrices/x.pyc").touch()
    assert [name for name, _ in Payload(roots, roots).tree("matrices")] == ["a", "b", "c"]


def test_code_is_not_taken_from_the_current_directory(tmp_path: Path) -> None:
    (tmp_path / "validate").mkdir()
    (tmp_path / "validate/stranger.py").touch()
    payload = open_payload(cwd=tmp_path)
    assert "stranger.py" in dict(payload.tree("validate"))
    assert "stranger.py" not in dict(payload.code("validate"))


def test_an_overlay_comes_before_the_current_directory_and_the_shipped_files(
    roots: tuple[Path, Path],
) -> None:
    assert open_payload(*roots).roots == (*roots, shipped_root())
    assert open_payload(*roots).code_roots == (roots[0], shipped_root())


def test_one_folder_is_one_root(roots: tuple[Path, Path]) -> None:
    assert open_payload(roots[0], roots[0] / "../one").roots == (
        roots[0] / "../one",
        shipped_root(),
    )


def test_an_overlay_that_is_no_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        open_payload(tmp_path / "nowhere")
    assert str(caught.value) == (
        f"error: overlay `{tmp_path}/nowhere` is not a directory\n"
        "\n"
        "hint: give a directory that has `dockerfiles/` or `matrices/` in it"
    )


def test_paths_are_shown_relative_where_they_are_below_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert shown(tmp_path / "here/matrices/x.yaml") == "matrices/x.yaml"
    assert shown(tmp_path / "there/x.yaml") == str(tmp_path / "there/x.yaml")


def test_releases_and_rules_are_files_of_the_catalog_and_of_recipes(overlay: Overlay) -> None:
    csv = overlay.write("dockerfiles/components/alpha/releases.csv", "version\n")
    more = overlay.write("dockerfiles/virtual/gpu.csv", "name\n")
    rule = overlay.write("dockerfiles/rules/one.yaml", "what: x\n")
    overlay.matrix("name: small\n")
    assert {csv, more, rule} <= {*overlay.payload.catalog_files()}
    assert {csv, more, rule} <= {*overlay.payload.recipe_files("small", ())}


def test_the_rank_of_a_path_is_that_of_the_root_that_wins(roots: tuple[Path, Path]) -> None:
    payload = Payload(roots, roots)
    assert [payload.rank(f"matrices/{name}") for name in "abcd"] == [0, 0, 1, 2]
