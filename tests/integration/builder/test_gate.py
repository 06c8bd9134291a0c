"""Test the gate of `imagegen build`: a tag moves only after `validate --static` passed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from imagegen.engine.images import local_images
from imagegen.model.labels import LABEL_VALIDATED

if TYPE_CHECKING:
    from tiny_family import TinyFamily


@pytest.fixture
def healthy(tiny: TinyFamily) -> TinyFamily:
    """Build and tag one image, then choose the failing release of its check for the next build."""
    tiny.check()
    tiny.write_matrix({"os": ["tiny12"]}, {"check": "1"})
    tiny.build()
    tiny.write_matrix({"os": ["tiny12"]}, {"check": "2"})
    return tiny


def test_an_image_that_fails_does_not_take_the_tag(healthy: TinyFamily) -> None:
    old = healthy.built()["tiny12"].id
    ended = healthy.build(code=6)
    assert healthy.built()["tiny12"].id == old
    assert f"`{healthy.matrix}/tiny12` failed" in ended.err
    assert ": validation" in ended.err
    assert "tiny.verdict: the verdict of release 2" in ended.err
    assert "remedy: take release 1" in ended.err
    assert "hint: mend the image, or build with `--no-validate` to look inside" in ended.err
    assert "0 of 1 images ready" in ended.out
    failed = ended.err.partition("\n    image ")[2].split()[0]
    assert failed.startswith("sha256:")
    assert local_images.find(healthy.engine, failed) is not None
    assert failed != old


def test_no_validate_tags_it_and_says_so(healthy: TinyFamily) -> None:
    old = healthy.built()["tiny12"].id
    healthy.build("--no-validate")
    new = healthy.built()["tiny12"]
    assert new.id != old
    assert new.labels[LABEL_VALIDATED] == "not validated: --no-validate"
    ended = healthy.run(
        "publish",
        "-m",
        healthy.matrix,
        "--overlay",
        str(healthy.root),
        "--to",
        "127.0.0.1:1/team",
        code=8,
    )
    assert "is not published: it has no validation record for these bytes" in ended.err


def test_an_image_without_validate_fails_the_gate(tiny: TinyFamily) -> None:
    tiny.component("plain", "RUN echo TOKEN > /plain")
    tiny.write_matrix({"os": ["tiny12"]}, {"plain": "1"})
    ended = tiny.build(code=6)
    assert "has no /usr/local/bin/validate" in ended.err
    assert tiny.built() == {}


def test_an_image_that_does_not_start_stops_no_other(tiny: TinyFamily) -> None:
    tiny.check()
    tiny.component("entry", "RUN echo TOKEN > /dev/null", entrypoint="/no-such-program")
    omitted = {"want": "1", "omit": [{"when": {"check": "1"}, "reason": "a test"}]}
    tiny.write_matrix({"os": ["tiny12"], "check": ["1", "2"]}, {"entry": omitted})
    rows = tiny.build("--format", "json", code=6).documents
    assert [row["outcome"] for row in rows[-2]] == ["built", "failed"]
    assert [*tiny.built()] == ["tiny12-1"]
    (problem,) = rows[-1]["errors"]
    assert problem["text"].endswith(": validation")
    assert any("no-such-program" in line for line in problem["evidence"])
