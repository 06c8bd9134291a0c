"""Test what may be published, and in which order, with the registry's calls replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from imagegen.engine.registry import remote_images
from imagegen.errors import PublishError
from imagegen.model.validation import ValidationRecord
from imagegen.publisher import publish as publishing
from imagegen.publisher.publish import (
    PublishCandidate,
    publish,
    published_reference,
    refusals,
)
from imagegen.validation.image_secrets import FileSecret, ImageSecrets

if TYPE_CHECKING:
    from collections.abc import Callable

    from imagegen.engine.client import Engine

ENGINE = cast("Engine", object())
TO = "localhost:5000/team"


def candidate(
    name: str, *, passed: bool = True, of: str = "", tier: str = "full"
) -> PublishCandidate:
    image_id = f"sha256:{name}"
    record = ValidationRecord(of or image_id, name, tier, passed, {}, 1.0)
    return PublishCandidate(f"imagegen/cpu:{name}", image_id, record)


class Registry:
    """Hold tags and what they name; `log` has the calls in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tags: dict[str, str] = {}
        self.log: list[str] = []
        self.broken_tag = ""
        monkeypatch.setattr(remote_images, "push", self.push)
        monkeypatch.setattr(remote_images, "digest_of", lambda ref, _: self.tags.get(ref))
        monkeypatch.setattr(remote_images, "move_tag", self.move_tag)

    def push(self, _: Engine, image_id: str, ref: str, __: Callable[[str], None]) -> str:
        self.log.append(f"push {ref}")
        return f"digest of {image_id}"

    def move_tag(self, repository: str, digest: str, tag: str, _: Engine) -> None:
        if tag == self.broken_tag:
            raise PublishError.of("the registry refused")
        self.log.append(f"move {tag}")
        self.tags[f"{repository}:{tag}"] = digest


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> Registry:
    return Registry(monkeypatch)


def out(*candidates: PublishCandidate) -> list[tuple[str, str, str]]:
    published = publish(ENGINE, candidates, TO, lambda _: None)
    return [(one.reference, one.digest, one.previous) for one in published]


def test_a_local_tag_keeps_its_last_part_in_the_registry() -> None:
    there = published_reference("imagegen/cpu:x", "localhost:5000/team/")
    assert there == "localhost:5000/team/cpu:x"


@pytest.mark.parametrize(
    ("one", "text", "hint"),
    [
        (
            PublishCandidate("imagegen/cpu:a", "", None),
            "the engine has no such image",
            "imagegen build",
        ),
        (
            PublishCandidate("imagegen/cpu:a", "sha256:a", None),
            "it has no validation record for these bytes",
            "imagegen validate imagegen/cpu:a",
        ),
        (
            candidate("a", of="sha256:older"),
            "it has no validation record for these bytes",
            "imagegen validate imagegen/cpu:a",
        ),
        (
            candidate("a", passed=False),
            "its last validation did not pass",
            "imagegen validate imagegen/cpu:a",
        ),
    ],
)
def test_an_image_is_refused_with_the_reason(
    there: Registry, one: PublishCandidate, text: str, hint: str
) -> None:
    (problem,) = refusals([one])
    assert problem.text == f"`imagegen/cpu:a` is not published: {text}"
    assert problem.hint == hint
    with pytest.raises(PublishError):
        out(candidate("b"), one)
    assert there.log == []


def test_the_whole_error_of_a_refusal() -> None:
    assert str(PublishError(*refusals([candidate("a", passed=False)]))) == (
        "error: `imagegen/cpu:a` is not published: its last validation did not pass\n"
        "  image sha256:a\n"
        "\n"
        "hint: imagegen validate imagegen/cpu:a"
    )


def test_all_are_pushed_before_the_first_tag_moves(there: Registry) -> None:
    assert out(candidate("a"), candidate("b")) == [
        (f"{TO}/cpu:a", "digest of sha256:a", ""),
        (f"{TO}/cpu:b", "digest of sha256:b", ""),
    ]
    assert there.log == [f"push {TO}/cpu:a", f"push {TO}/cpu:b", "move a", "move b"]


def test_what_a_tag_named_before_is_kept(there: Registry) -> None:
    there.tags[f"{TO}/cpu:a"] = "older"
    assert out(candidate("a"))[0][2] == "older"


def test_a_tag_that_is_right_already_is_not_moved(there: Registry) -> None:
    there.tags[f"{TO}/cpu:a"] = "digest of sha256:a"
    out(candidate("a"))
    assert there.log == [f"push {TO}/cpu:a"]


def test_moved_tags_are_put_back_where_one_cannot_be_moved(there: Registry) -> None:
    there.tags = {f"{TO}/cpu:a": "older a", f"{TO}/cpu:b": "older b"}
    there.broken_tag = "b"
    with pytest.raises(PublishError, match="the registry refused"):
        out(candidate("a"), candidate("b"))
    assert there.tags == {f"{TO}/cpu:a": "older a", f"{TO}/cpu:b": "older b"}


def test_a_secret_in_a_layer_or_a_variable_is_refused_where_nobody_looked(
    there: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = ImageSecrets((FileSecret("private key", 2, "/root/key"),), ("password in ENV A",))
    monkeypatch.setattr(publishing, "secrets_of", lambda *_: found)
    out(candidate("a"))
    there.log.clear()
    with pytest.raises(PublishError, match="private key in layer 2: /root/key"):
        out(candidate("a", tier="static"))
    assert there.log == []
