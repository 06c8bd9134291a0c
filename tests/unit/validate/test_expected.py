"""Test when a measured version agrees with the one that the image promises."""

from __future__ import annotations

import pytest

from validate.expected import same_version


@pytest.mark.parametrize(
    ("promised", "measured", "agree"),
    [
        ("3.11", "3.11.2", True),
        ("3.11.2", "3.11.2", True),
        ("3.1", "3.11.2", False),
        ("2.6.0", "2.6.0+debian", True),
        ("1.11.0+cu113", "1.11.0+cu113", True),
        ("1.11.0+cu113", "1.11.0+cpu", False),
        ("1.13.1", "1.13.0a0", False),
    ],
)
def test_versions_agree_where_the_promise_says_so(
    promised: str, measured: str, agree: bool
) -> None:
    assert same_version(promised, measured) is agree
