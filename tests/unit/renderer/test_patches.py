"""Test patches to files of packages: what an image says of them, and how they are applied."""

from __future__ import annotations

import importlib.util
import re
from typing import TYPE_CHECKING, Any

import pytest

from imagegen.planner.layer_order import layer_orders
from imagegen.renderer.image_json import expectation
from imagegen.resolver.resolve import resolve_cells
from unit.conftest import REPOSITORY, SMALL

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.model.catalog import Catalog
    from unit.conftest import Overlay

COMPONENTS = REPOSITORY / "dockerfiles/components"
PATCH = """What it is for, and its source.
--- a{path}
+++ b{path}
@@ -1,2 +1,2 @@
 first
-second
+{new}
"""


def applier() -> Any:
    """Load the program that a build runs."""
    (path,) = COMPONENTS.glob("*/files/patches/apply.py")
    spec = importlib.util.spec_from_file_location("apply", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_patch_changes_the_files_that_its_release_names_and_no_others(
    shipped: Catalog,
) -> None:
    named = {
        COMPONENTS / name / f"files/patches/{release.version}.patch": {*release.patched}
        for name, component in shipped.components.items()
        for release in component.releases
        if release.patched and (COMPONENTS / name / "files/patches").is_dir()
    }
    assert {*named} == {*COMPONENTS.glob("*/files/patches/*.patch")}
    for path, files in named.items():
        text = path.read_text()
        assert {*applier().changes(text)} == files
        assert "https://" in text.partition("\n--- ")[0]


def test_a_file_that_a_recipe_puts_in_the_place_of_a_packages_own_is_named(
    shipped: Catalog,
) -> None:
    for name, component in shipped.components.items():
        text = (COMPONENTS / name / "install.j2").read_text(encoding="utf-8")
        diverted = {*re.findall(r"dpkg-divert .*--add (/\S+)", text)}
        for release in component.releases:
            assert diverted <= {*release.patched} or not release.apt


def test_an_image_says_which_files_it_has_changed_and_why(overlay: Overlay) -> None:
    path = overlay.root / "dockerfiles/components/delta/component.yaml"
    patched = "patched: {/usr/lib/b.py: it was broken, /usr/lib/a.py: it was slow}"
    path.write_text(path.read_text().replace("origin:", f"{patched}\n    origin:"))
    spec = next(
        one
        for one in resolve_cells(overlay.read(SMALL).cells, overlay.catalog)
        if one.cell.name == "debian12-core"
    )
    order = layer_orders([spec], overlay.catalog, {})[spec.os.id]
    assert expectation(spec, order, overlay.catalog)["patched"] == [
        {"path": "/usr/lib/a.py", "reason": "it was slow"},
        {"path": "/usr/lib/b.py", "reason": "it was broken"},
    ]


def test_the_original_is_diverted_before_the_new_file_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply, calls = applier(), []
    file = tmp_path / "code.py"
    file.write_text("first\nsecond = 1\nthird = 1\n".replace("first", "one = 1"))

    def divert(argv: list[str], *, check: bool) -> None:
        calls.append((argv[0], argv[-1], check))
        file.rename(f"{file}.distrib")

    monkeypatch.setattr(apply.subprocess, "run", divert)
    text = PATCH.format(path=file, new="second = 2").replace("first", "one = 1")
    (tmp_path / "patch").write_text(text.replace("-second\n", "-second = 1\n"))
    apply.main(str(tmp_path / "patch"))
    assert calls == [("dpkg-divert", str(file), True)]
    assert file.read_text() == "one = 1\nsecond = 2\nthird = 1\n"
    assert (tmp_path / "code.py.distrib").read_text() == "one = 1\nsecond = 1\nthird = 1\n"


@pytest.mark.parametrize("text", ["first\nother\n", "first\nsecond\nfirst\nsecond\n"])
def test_a_file_that_a_patch_was_not_made_for_stays_as_it_is(tmp_path: Path, text: str) -> None:
    file = tmp_path / "code.py"
    file.write_text(text)
    (tmp_path / "patch").write_text(PATCH.format(path=file, new="third"))
    with pytest.raises(SystemExit, match="another one than the patch was made for"):
        applier().main(str(tmp_path / "patch"))
    assert file.read_text() == text


def test_a_patch_of_nothing_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "patch").write_text("--- a/x\n")
    with pytest.raises(SystemExit, match="changes nothing"):
        applier().main(str(tmp_path / "patch"))
