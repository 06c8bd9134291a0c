"""Test an image that is much larger than the last good one: it causes a warning, or gets no tag."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tiny_family import TinyFamily

# 60 MB, then 120 MB, on a base of a bit more than 100 MB.
LARGE = """\
RUN head -c $(( {{ release.version }} * 60000000 )) /dev/urandom > /data # TOKEN
"""


def test_an_image_that_grew(tiny: TinyFamily) -> None:
    tiny.component("data", LARGE, ("1", "2"))
    tiny.component("other", "RUN echo TOKEN > /other")
    axes, rest = {"os": ["debian12"]}, {"other": "1"}
    tiny.write_matrix(axes, {"data": "1", **rest})
    assert "warning" not in tiny.build("--no-validate").text
    first = tiny.built()["debian12"]

    fails = {"size_budget": {"factor": 1.1, "action": "fail"}}
    tiny.write_matrix(axes, {"data": "2", **rest}, **fails)
    ended = tiny.build("--no-validate", code=6)
    assert f"build of `{tiny.matrix}/debian12` failed: size budget" in ended.err
    assert "is over the size budget of" in ended.err
    assert "1.1 x the last good image" in ended.err
    assert "data 2: 60.0 MB more" in ended.err
    assert "other 1:" not in ended.err
    assert f"imagegen diff {first.id[7:19]} " in ended.err
    assert "hint: make it smaller, or say in its matrix how large it may be" in ended.err
    assert tiny.built()["debian12"].id == first.id

    tiny.write_matrix(axes, {"data": "2", **rest})
    ended = tiny.build("--no-validate")
    assert f"warning: {tiny.matrix}/debian12: " in ended.out
    assert "1.2 x the last good image" in ended.out
    assert "data 2: 60.0 MB more" in ended.out
    assert "1 of 1 images ready" in ended.out
    assert tiny.built()["debian12"].id != first.id

    tiny.write_matrix(axes, {"data": "2", **rest}, size_budget={"size": "1 MB", "action": "fail"})
    assert "up to date" in tiny.build("--no-validate").out
    ended = tiny.build("--no-validate", "--force", code=6)
    assert "is over the size budget of 1.0 MB: `size_budget` of its matrix" in ended.err
