"""Test what is wrong with the name of an image."""

from __future__ import annotations

import pytest

from imagegen.model.image import name_problem


@pytest.mark.parametrize(
    "reference",
    [
        "imagegen/cpu:debian12-torch1.13.1-none",
        "debian",
        "localhost:5000/team/cpu:x",
        "localhost/cpu",
        "[::1]:5000/cpu:x",
        "registry.example.org/a/b-c/d__e:_1",
        "a/b:" + "x" * 128,
        "a" * 255,
    ],
)
def test_good_names(reference: str) -> None:
    assert name_problem(reference) == ""


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        ("a/b:" + "x" * 129, "its tag has 129 characters, 128 are allowed"),
        ("a" * 256, "its name has 256 characters, 255 are allowed"),
        ("a/B:x", "`'B'` cannot be a part of a name"),
        ("a/Team/cpu:x", "`'Team'` cannot be a part of a name"),
        ("a//b", "`''` cannot be a part of a name"),
        ("a/b..c", "`'b..c'` cannot be a part of a name"),
        ("a/b___c", "`'b___c'` cannot be a part of a name"),
        ("a/-b", "`'-b'` cannot be a part of a name"),
        ("a/b:-x", "`'-x'` cannot be a tag"),
        ("a/b:x y", "`'x y'` cannot be a tag"),
        ("a/b:\udcff", "`'\\udcff'` cannot be a tag"),
        ("a/b:", "its tag is empty"),
        ("host:port/a", "`'host:port'` is not a registry"),
        ("\udcff.org/a", "`'\\udcff.org'` is not a registry"),
        ("", "it has no name"),
    ],
)
def test_bad_names(reference: str, why: str) -> None:
    assert name_problem(reference).startswith(why)
