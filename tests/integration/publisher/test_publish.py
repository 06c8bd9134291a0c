"""Test `imagegen publish` with a real registry: what is sent and refused, what a crash leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from registry import digest_there, failing_registry

from imagegen.engine.images import local_images

if TYPE_CHECKING:
    from tiny_family import TinyFamily

pytestmark = pytest.mark.both_engines(long=True)


@pytest.fixture
def pair(tiny: TinyFamily) -> TinyFamily:
    """Build two cells without validating them."""
    tiny.component("part", "RUN echo {{ release.version }} TOKEN > /part", ("1", "2"))
    tiny.check()
    tiny.write_matrix({"os": ["tiny12"], "part": ["1", "2"]}, {"check": "1"})
    tiny.build("--no-validate")
    return tiny


def change(family: TinyFamily) -> None:
    """Change the bytes of every cell."""
    family.component("part", "RUN echo again {{ release.version }} TOKEN > /part", ("1", "2"))
    family.build("--no-validate")


@pytest.mark.both_engines
def test_what_is_published_is_what_was_validated(pair: TinyFamily, registry: str) -> None:
    to = f"{registry}/team"
    first, second = (f"{to}/{pair.token}:tiny12-{number}" for number in (1, 2))

    refused = pair.command("publish", "--to", to, code=8)
    assert refused.err.count("is not published: it has no validation record for these bytes") == 2
    assert f"hint: imagegen validate {pair.image('tiny12-1')}" in refused.err
    assert digest_there(first) is None

    pair.command("validate")
    rows = pair.command("publish", "--to", to, "--format", "json").result
    assert [row["image"] for row in rows] == [first, second]
    assert [row["digest"] for row in rows] == [digest_there(first), digest_there(second)]
    assert [row["id"] for row in rows] == [image.id for _, image in sorted(pair.built().items())]
    assert [row["previous"] for row in rows] == ["", ""]

    change(pair)
    refused = pair.command("publish", "--to", to, code=8)
    assert refused.err.count("is not published: it has no validation record for these bytes") == 2
    assert digest_there(first) == rows[0]["digest"]

    pair.command("validate", "*-1")
    half = pair.command("publish", "--to", to, code=8)
    assert half.err.count("is not published") == 1
    assert digest_there(first) == rows[0]["digest"]

    pair.command("validate", "*-2")
    again = pair.command("publish", "--to", to, "--format", "json").result
    assert [row["previous"] for row in again] == [row["digest"] for row in rows]
    assert [digest_there(first), digest_there(second)] == [row["digest"] for row in again]


def test_a_failed_validation_is_refused(pair: TinyFamily, registry: str) -> None:
    pair.write_matrix({"os": ["tiny12"], "part": ["1"]}, {"check": "2"})
    pair.build("--no-validate")
    pair.command("validate", code=7)
    ended = pair.command("publish", "--to", f"{registry}/team", code=8)
    assert "is not published: its last validation did not pass" in ended.err


def test_an_image_that_was_never_built_is_refused(tiny: TinyFamily, registry: str) -> None:
    tiny.component("part", "RUN echo TOKEN > /part")
    tiny.write_matrix({"os": ["tiny12"]}, {"part": "1"})
    ended = tiny.command("publish", "--to", f"{registry}/team", code=8)
    assert f"`{tiny.image('tiny12')}` is not published: the engine has no such image" in ended.err
    assert "hint: imagegen build" in ended.err


def test_a_private_key_in_a_layer_is_refused(tiny: TinyFamily, registry: str) -> None:
    tiny.component(
        "key",
        "RUN mkdir /k && printf -- '-----BEGIN OPENSSH PRIVATE KEY-----\\nTOKEN\\n' > /k/id\n"
        "RUN rm -r /k",
    )
    tiny.check()
    tiny.write_matrix({"os": ["tiny12"]}, {"key": "1", "check": "1"})
    tiny.build()
    ended = tiny.command("publish", "--to", f"{registry}/team", code=8)
    assert "is not published: private key in layer" in ended.err
    assert "/k/id" in ended.err
    failed = tiny.command("validate", code=7)
    assert "image.private-key-in-layer" in failed.err
    assert digest_there(f"{registry}/team/{tiny.token}:tiny12") is None


def test_a_registry_that_refuses_in_the_middle_gets_its_old_tags_back(
    pair: TinyFamily, registry: str
) -> None:
    names = [f"team/{pair.token}:tiny12-{number}" for number in (1, 2)]
    pair.command("validate")
    pair.command("publish", "--to", f"{registry}/team")
    before = [digest_there(f"{registry}/{name}") for name in names]
    change(pair)
    pair.command("validate")

    with failing_registry(registry, b"/manifests/tiny12-2", dies=False) as address:
        ended = pair.command("publish", "--to", f"{address}/team", code=8)
    assert "error: tag `tiny12-2` was not moved to sha256:" in ended.err
    assert "500" in ended.err
    assert f"{address}/{names[0]} is back at {before[0]}" in ended.out
    assert [digest_there(f"{registry}/{name}") for name in names] == before
    left = [tag for image in pair.engine.api.images() for tag in image["RepoTags"] or ()]
    assert [tag for tag in left if address in tag] == []

    with failing_registry(registry, b"/manifests/tiny12-1", dies=True) as address:
        ended = pair.command("publish", "--to", f"{address}/team", code=8)
    assert "error: tag `tiny12-1` was not moved to sha256:" in ended.err
    assert [digest_there(f"{registry}/{name}") for name in names] == before

    with failing_registry(registry, b"/manifests/tiny12-2", dies=True) as address:
        ended = pair.command("publish", "--to", f"{address}/team", code=8)
    assert "error: tag `tiny12-2` was not moved to sha256:" in ended.err
    # A tag that could not be restored is named, with the digest that it had.
    assert f"error: `{address}/{names[0]}` could not be put back to {before[0]}" in ended.err
    assert digest_there(f"{registry}/{names[1]}") == before[1]


def test_a_registry_that_is_not_there(pair: TinyFamily) -> None:
    pair.command("validate")
    ended = pair.command("publish", "--to", "127.0.0.1:1/team", code=8)
    assert "127.0.0.1:1" in ended.err
    assert "hint:" in ended.err
    assert local_images.find(pair.engine, f"127.0.0.1:1/team/{pair.token}:tiny12-1") is None
