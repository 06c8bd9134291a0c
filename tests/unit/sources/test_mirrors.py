"""Test that addresses are replaced by the mirror of their longest prefix, and by no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from imagegen.config.payload import Payload
from imagegen.errors import ConfigError
from imagegen.sources.mirrors import read_mirrors, rewrite, rewrite_image

if TYPE_CHECKING:
    from pathlib import Path

MIRRORS = {
    "https://vendor.example/": "https://mirror.lan/vendor/",
    "https://vendor.example/cuda": "https://mirror.lan/cuda",
    "http://plain.example": "file:///srv/plain",
}


@pytest.mark.parametrize(
    ("url", "asked"),
    [
        ("https://vendor.example/a/b.tgz", "https://mirror.lan/vendor/a/b.tgz"),
        ("https://vendor.example/cuda/b.tgz", "https://mirror.lan/cuda/b.tgz"),
        ("https://vendor.example/cuda", "https://mirror.lan/cuda"),
        # `cuda` is a part of the path, not the beginning of a word
        ("https://vendor.example/cuda-12/b.tgz", "https://mirror.lan/vendor/cuda-12/b.tgz"),
        ("https://vendor.example/cuda?v=1", "https://mirror.lan/cuda?v=1"),
        ("https://vendor.example/a/", "https://mirror.lan/vendor/a/"),
        ("HTTPS://Vendor.Example/A.tgz", "https://mirror.lan/vendor/A.tgz"),
        ("http://plain.example/x", "file:///srv/plain/x"),
        ("https://vendor.example.evil/x", "https://vendor.example.evil/x"),
        ("http://vendor.example/x", "http://vendor.example/x"),
        ("https://mirror.lan/vendor/x", "https://mirror.lan/vendor/x"),
    ],
)
def test_the_longest_prefix_wins(url: str, asked: str) -> None:
    assert rewrite(url, MIRRORS) == asked
    assert rewrite(url, dict(reversed(MIRRORS.items()))) == asked
    assert rewrite(url, {}) == url


def test_what_a_mirror_answers_for_is_not_rewritten_again() -> None:
    ring = {"https://a.example/": "https://b.example/", "https://b.example/": "https://a.example/"}
    assert rewrite("https://a.example/x", ring) == "https://b.example/x"


def payload(root: Path, text: str) -> Payload:
    (root / "mirrors.yaml").write_text(text)
    return Payload((root,), (root,))


def test_the_file_is_read_and_may_be_absent(tmp_path: Path) -> None:
    assert read_mirrors(Payload((tmp_path,), ())) == {}
    text = "mirrors:\n  https://vendor.example/: https://mirror.lan/v/\n"
    assert read_mirrors(payload(tmp_path, text)) == {
        "https://vendor.example/": "https://mirror.lan/v/"
    }


def test_all_problems_are_told_at_once_with_their_lines(tmp_path: Path) -> None:
    text = "mirrors:\n  vendor.example: https://mirror.lan/\n  https://b/: mirror\nother: 1\n"
    with pytest.raises(ConfigError) as caught:
        read_mirrors(payload(tmp_path, text))
    problems = {(problem.line, problem.key) for problem in caught.value.problems}
    assert problems == {(2, "mirrors.vendor.example"), (3, "mirrors.https://b/"), (4, "other")}


def test_two_spellings_of_one_prefix_are_refused(tmp_path: Path) -> None:
    text = "mirrors:\n  https://a.example/x: https://b/\n  https://A.example/x/: https://c/\n"
    with pytest.raises(ConfigError, match="means the same as") as caught:
        read_mirrors(payload(tmp_path, text))
    assert caught.value.problems[0].line == 3


@pytest.mark.parametrize(
    ("image", "mirrors", "pulled"),
    [
        ("nvidia/cuda:9.0-devel-ubuntu16.04", {}, "nvidia/cuda:9.0-devel-ubuntu16.04"),
        (
            "nvidia/cuda:9.0-devel-ubuntu16.04",
            {"https://docker.io/nvidia/": "https://mirror:5000/nv"},
            "mirror:5000/nv/cuda:9.0-devel-ubuntu16.04",
        ),
        (
            "debian:bookworm-slim",
            {"https://docker.io": "https://mirror/hub"},
            "mirror/hub/library/debian:bookworm-slim",
        ),
    ],
)
def test_a_base_of_docker_hub_is_pulled_from_its_mirror(
    image: str, mirrors: dict[str, str], pulled: str
) -> None:
    assert rewrite_image(image, mirrors) == pulled
