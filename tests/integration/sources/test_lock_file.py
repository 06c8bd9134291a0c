"""Test locks with a real engine and apt: written from images, used, and refused after drift."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from imagegen.engine.images.contents import installed as contents_of
from imagegen.model.labels import LABEL_LOCK

if TYPE_CHECKING:
    from pathlib import Path

    from command_line import Ended
    from tiny_family import TinyFamily, TinyMaker

INSTALL = """\
{% import "macros/apt.j2" as apt %}
{{ apt.install(os, release.apt) }}
RUN echo TOKEN > /token"""
COMPILED = """\
{% import "macros/apt.j2" as apt %}
{{ apt.install(os, release.build_apt) }}
RUN echo TOKEN > /made"""


@pytest.fixture(scope="module")
def family(make_tiny: TinyMaker) -> TinyFamily:
    """Make a family: a package by a pattern of its version, one of a build stage, and `check`."""
    tiny = make_tiny()
    template = tiny.component("named", INSTALL)
    (template.parent / "build.j2").write_text(COMPILED.replace("TOKEN", tiny.token) + "\n")
    described = yaml.safe_load((template.parent / "component.yaml").read_text())
    described["releases"][0] |= {"apt": {"hostname": "3.*"}, "build_apt": {"m4": "1.*"}}
    (template.parent / "component.yaml").write_text(yaml.safe_dump(described))
    template.write_text(template.read_text() + "COPY --from=named-build /made /made\n")
    tiny.check()
    tiny.write_matrix({"os": ["debian12"]}, {"named": "any", "check": "1"})
    return tiny


@pytest.fixture(scope="module")
def locked(family: TinyFamily) -> dict[str, Any]:
    """Return the lock of the built family as data."""
    family.command("lock", code=6)
    family.build()
    family.command("lock")
    lock: dict[str, Any] = yaml.safe_load(path_of(family).read_text())
    return lock


@pytest.fixture(scope="module")
def held(family: TinyFamily, locked: dict[str, Any]) -> Ended:
    """Build for the first time with the lock."""
    del locked
    return family.build("--locked", "--format", "json")


def path_of(family: TinyFamily) -> Path:
    return family.root / "matrices" / f"{family.matrix}.lock.yaml"


def test_a_lock_holds_packages_of_the_image_and_of_its_build_stages(
    family: TinyFamily, locked: dict[str, Any]
) -> None:
    (image,) = family.built().values()
    installed = contents_of(family.engine, image.id).debs
    system = locked["systems"]["debian12"]
    assert system["apt"]["hostname"] == installed["hostname"]
    assert "m4" in system["apt"]
    assert "m4" not in installed
    assert system["base"].startswith("sha256:")
    assert locked["cells"]["debian12"]["releases"] == {"check": "1", "named": "1"}


def test_a_held_build_has_exactly_the_locked_packages_and_says_so(
    family: TinyFamily, locked: dict[str, Any], held: Ended
) -> None:
    assert [row["outcome"] for row in held.result] == ["built"]
    (image,) = family.built().values()
    assert image.labels[LABEL_LOCK].startswith("sha256:")
    system = locked["systems"]["debian12"]["apt"]
    installed = contents_of(family.engine, image.id).debs
    assert {name: system[name] for name in installed} == installed


def test_the_same_lock_gives_the_same_image(family: TinyFamily, held: Ended) -> None:
    (row,) = held.result
    (again,) = family.build("--locked", "--format", "json").result
    assert (again["outcome"], again["id"]) == ("up-to-date", row["id"])


def test_what_was_built_from_a_lock_is_not_locked_again(family: TinyFamily, held: Ended) -> None:
    del held
    before = path_of(family).read_text()
    assert "was built from a lock" in family.command("lock", code=6).err
    assert path_of(family).read_text() == before


@pytest.mark.parametrize(
    ("section", "name", "value"),
    [
        ("apt", "hostname", "3.00"),
        ("base", "", "sha256:other"),
        ("wheels", "six-1.16.0.tar.gz", ""),
    ],
)
def test_a_lock_that_does_not_hold_any_more_is_refused_before_anything_is_built(
    family: TinyFamily, locked: dict[str, Any], held: Ended, section: str, name: str, value: str
) -> None:
    del held
    lock = yaml.safe_load(yaml.safe_dump(locked))
    system = lock["systems"]["debian12"]
    if name:
        system[section][name] = value or "0" * 64
    else:
        system[section] = value
    before = path_of(family).read_text()
    path_of(family).write_text(yaml.safe_dump(lock))
    ended = family.build("--locked", code=6)
    path_of(family).write_text(before)
    assert "one thing drifted" in ended.err
    assert (name or "base") in ended.err
    assert (value or "0" * 64) in ended.err
    assert "[named" not in ended.text
