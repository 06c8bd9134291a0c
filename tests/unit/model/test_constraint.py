"""Test what a wish means for a release."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imagegen.model.constraint import (
    is_variant,
    is_version,
    matches,
    names_variant,
    nearest,
    own_variant,
    problem_with,
    version_key,
)


@pytest.mark.parametrize(
    ("wish", "version"),
    [
        ("1.13", "1.13.1"),
        ("1.13.1", "1.13.1"),
        ("1", "1.13.1"),
        ("1.11.0", "1.11.0+cu113"),
        ("1.11.0+cu113", "1.11.0+cu113"),
        (">=1.11,<1.13", "1.12.1"),
        ("!=1.12", "1.12.1"),
        ("5.4-3.1.0.0", "5.4-3.1.0.0"),
        (">=5.4-1", "5.4-3.1.0.0"),
        ("any", "0.1"),
        (">=2", "2.1rc1"),
    ],
)
def test_a_wish_takes_a_version(wish: str, version: str) -> None:
    assert problem_with(wish) == ""
    assert matches(wish, version)


@pytest.mark.parametrize(
    ("wish", "version"),
    [
        ("1.1", "1.13.1"),
        ("1.13.1", "1.13"),
        ("1.11.0+cu113", "1.11.0+cu102"),
        ("1.11.0+cu113", "1.11.0"),
        (">=1.11,<1.13", "1.13.0"),
        ("none", "1.0"),
        ("rdma-core", "44.0"),
        ("11.10", "11.1"),
    ],
)
def test_a_wish_leaves_a_version(wish: str, version: str) -> None:
    assert not matches(wish, version)


def test_a_variant_is_asked_for_by_its_name() -> None:
    assert is_variant("rdma-core")
    assert not is_variant("any")
    assert not is_variant("none")
    assert matches("rdma-core", "44.0", "rdma-core")
    assert not matches("mlnx", "44.0", "rdma-core")


@pytest.mark.parametrize(
    "evil",
    ["1.0\n", "1.0\nRUN x", '1"', "1'", "$x", "1$(x)", "`x`", "1;x", "1&&x", "1|x", "", " 1"],
)
def test_what_could_end_a_shell_word_is_no_wish(evil: str) -> None:
    assert problem_with(evil) == "has characters that no version has"


def test_wishes_that_mean_nothing_are_told_apart() -> None:
    assert problem_with(">=one") == "is not a version range such as `>=1.11,<1.13`"
    assert problem_with("1..2") == "is neither a version nor a range nor a variant"


def test_versions_are_sorted_as_numbers() -> None:
    assert sorted(["1.9", "1.13", "1.10"], key=version_key) == ["1.9", "1.10", "1.13"]
    assert not is_version("latest-and-greatest")


@given(st.lists(st.integers(0, 99), min_size=1, max_size=4), st.integers(1, 4))
def test_every_prefix_of_a_version_takes_it(numbers: list[int], length: int) -> None:
    prefix = ".".join(map(str, numbers[:length]))
    assert matches(prefix, ".".join(map(str, numbers)))


@given(st.text(max_size=12))
def test_a_text_without_a_problem_can_be_matched(text: str) -> None:
    if not problem_with(text):
        assert matches(text, "1.2.3", "some") in (True, False)


def test_a_version_of_a_variant_is_asked_for_by_both() -> None:
    assert problem_with("2.6.0 pypi") == ""
    assert matches("2.6.0 pypi", "2.6.0+cu124", "pypi")
    assert not matches("2.6.0 pypi", "2.6.0+cu124", "")
    assert not matches("2.6.0 pypi", "2.7.1+cu126", "pypi")
    assert matches(">=2.5, <2.7 pypi", "2.6.0+cu124", "pypi")
    assert problem_with("2.6.x pypi") == "is neither a version nor a range nor a variant"


VERSIONS = ["1.9.0", "1.10.0+cpu", "1.10.0+cu113", "1.11.0", "1.12.0", "2.0.0"]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("9.9", ["1.11.0", "1.12.0", "2.0.0"]),
        ("0.1", ["1.9.0", "1.10.0", "1.11.0"]),
        ("1.11.5", ["1.11.0", "1.12.0", "2.0.0"]),
        (">=1.10.5", ["1.10.0", "1.11.0", "1.12.0"]),
        ("1.10.0+cu99", ["1.10.0+cpu", "1.10.0+cu113"]),
        ("newest", ["1.11.0", "1.12.0", "2.0.0"]),
    ],
)
def test_the_nearest_versions_stand_around_the_one_that_is_asked_for(
    asked: str, found: list[str]
) -> None:
    assert nearest(asked, VERSIONS, 3) == found


@pytest.mark.parametrize(
    ("version", "variant"),
    [
        ("1.15.5+ttensorflow", "ttensorflow"),
        ("2.5.1+rocm6.2", "rocm6.2"),
        ("1.13.1", ""),
        ("1.13.1+cpu", ""),
        ("1.13.1+cu117", ""),
        ("7.6.5+cuda10.2", ""),
    ],
)
def test_a_local_part_that_is_no_usual_build_is_a_variant(version: str, variant: str) -> None:
    assert own_variant(version) == variant
    asked = (variant, f"{version.partition('+')[0]} {variant}", version)
    for text in asked if variant else ():
        assert matches(text, version)
        assert names_variant(text, variant)
    assert not matches("other", version)
