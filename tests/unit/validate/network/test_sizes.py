"""Test how sizes are read."""

from __future__ import annotations

import pytest

from validate.network.sizes import in_units, sizes_of


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("8", [8]),
        ("8..64", [8, 16, 32, 64]),
        ("8..50M", [8 * 2**n for n in range(23)] + [50 << 20]),
        ("1M,8,1KiB", [8, 1024, 1 << 20]),
        ("4k..8k,6K", [4096, 6144, 8192]),
    ],
)
def test_sizes(text: str, sizes: list[int]) -> None:
    assert sizes_of(text) == sizes


@pytest.mark.parametrize("text", ["", "8..", "3", "6", "8G", "1T", "64..8", "8-64", "-8", "0", "x"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="`"):
        sizes_of(text)


def test_units() -> None:
    assert [in_units(one) for one in (8, 1024, 1536, 1 << 20, 1 << 30)] == [
        *("8 B", "1K", "1536 B", "1M", "1G"),
    ]
