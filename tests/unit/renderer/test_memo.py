"""Test which results are used again for equal inputs, and which are made again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from imagegen.renderer.memo import Replay

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass
class Image:
    tag: str
    given: dict[str, str] = field(default_factory=dict)


@dataclass
class Row:
    version: str


class Template:
    """Make a text from an image and pins, and count how often the function ran."""

    def __init__(self, text: Any) -> None:
        self.replay: Replay[str] = Replay()
        self.text = text
        self.times = 0

    def __call__(self, image: Image, pins: Mapping[str, Row]) -> str:
        def make(seen: Mapping[str, Any]) -> str:
            self.times += 1
            return str(self.text(seen["image"], seen["pins"]))

        return self.replay.made("a template", {"image": image, "pins": pins}, make)


CUDA, OTHER = Row("12.4.1"), Row("11.8.0")


def test_what_is_not_read_does_not_matter() -> None:
    template = Template(lambda _, pins: f"cuda {pins['cuda'].version}")
    assert template(Image("a"), {"cuda": CUDA}) == "cuda 12.4.1"
    assert template(Image("b"), {"cuda": CUDA, "nccl": OTHER}) == "cuda 12.4.1"
    assert template.times == 1
    assert template(Image("a"), {"cuda": OTHER}) == "cuda 11.8.0"
    assert template.times == 2


def test_an_attribute_that_is_read_matters() -> None:
    template = Template(lambda image, _: image.tag)
    assert [template(Image(tag), {}) for tag in ("a", "b", "a")] == ["a", "b", "a"]
    assert template.times == 2


def test_a_mapping_inside_counts_key_by_key() -> None:
    template = Template(lambda image, _: image.given.get("device", "no device"))
    given: list[dict[str, str]] = [{"device": "gpu", "flavour": "devel"}, {"device": "gpu"}, {}]
    assert [template(Image("", one), {}) for one in given] == ["gpu", "gpu", "no device"]
    assert template.times == 2


def test_that_something_is_missing_matters() -> None:
    template = Template(lambda _, pins: "both" if "nccl" in pins and "cuda" in pins else "one")
    pins: list[dict[str, Row]] = [{"cuda": CUDA}, {"nccl": OTHER}, {"cuda": CUDA, "nccl": OTHER}]
    assert [template(Image(""), one) for one in pins] == ["one", "one", "both"]
    assert [template(Image(""), one) for one in pins] == ["one", "one", "both"]
    assert template.times == 3


def test_who_reads_all_of_a_mapping_gets_all_of_each() -> None:
    template = Template(lambda _, pins: " ".join(f"{name}={pins[name].version}" for name in pins))
    assert template(Image(""), {"cuda": CUDA}) == "cuda=12.4.1"
    assert template(Image(""), {"cuda": CUDA, "nccl": OTHER}) == "cuda=12.4.1 nccl=11.8.0"
    assert template(Image(""), {"cuda": OTHER}) == "cuda=11.8.0"


def test_rows_that_come_and_go_are_not_taken_for_one_another() -> None:
    template = Template(lambda _, pins: pins["cuda"].version)
    versions = [str(number) for number in range(50)]
    assert [template(Image(""), {"cuda": Row(version)}) for version in versions] == versions


def test_one_equals_true_and_yet_they_differ() -> None:
    template = Template(lambda image, _: repr(image.tag))
    assert [template(Image(tag), {}) for tag in (1, True, "1")] == ["1", "True", "'1'"]  # type: ignore[arg-type]


def test_a_failure_is_not_kept() -> None:
    template = Template(lambda image, _: image.nothing)
    for _ in range(2):
        with pytest.raises(AttributeError, match="nothing"):
            template(Image(""), {})
    assert template.times == 2
