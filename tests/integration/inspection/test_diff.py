"""Test `imagegen diff` on images with known differences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from imagegen.engine.images.inventory import inventory
from imagegen.model.recipe import ContextFile

if TYPE_CHECKING:
    from command_line import CommandLine
    from image_builder import Builder

    from imagegen.engine.client import Engine

DIST = "/usr/lib/python3/dist-packages/tiny-1.2.dist-info"
BOTH = "RUN mkdir /opt/one && dd if=/dev/zero of=/opt/one/file bs=1M count=3 2> /dev/null # "
MORE = (
    "ENTRYPOINT [\"/no/such/program\"]",
    "ENV GREETING=hello",
    f"RUN mkdir -p {DIST} && echo pip > {DIST}/INSTALLER",
    "RUN mkdir -p /opt/two/three && dd if=/dev/zero of=/opt/two/three/file bs=1M count=8",
    "RUN rm /opt/one/file && dd if=/dev/zero of=/tmp/left.tar bs=1M count=1",
)  # fmt: skip


@pytest.fixture
def pair(builder: Builder, token: str) -> tuple[str, str]:
    """Build two images; the second one does not start by itself."""
    return builder(BOTH + token), builder(BOTH + token, *MORE)


def test_what_differs_is_told(pair: tuple[str, str], command_line: CommandLine) -> None:
    found = command_line("diff", *pair, "--format", "json").result
    assert not found["same"]
    assert [(one["name"], one["after"]) for one in found["packages"]] == [("tiny", "1.2")]
    assert {"name": "GREETING", "before": "", "after": "hello", "kind": ""} in found["env"]
    assert [len(found[side]["layers"]) for side in ("before", "after")] == [0, 3]
    assert len(found["shared"]) == 2
    grew = {one["path"]: one["after"] - one["before"] for one in found["folders"]}
    assert 8_000_000 < grew["/opt/two/three/file"] < 9_000_000
    assert grew["/opt/one/file"] < -3_000_000
    left = {one["kind"]: one["examples"] for one in found["after"]["leftovers"]}
    assert left["temporary files"] == ["/tmp/left.tar"]
    text = command_line("diff", *pair).out
    assert "tiny  -  1.2" in text
    assert "/opt/two/three/file" in text
    assert "2 layers are shared" in text


def test_an_image_does_not_differ_from_itself(
    pair: tuple[str, str], command_line: CommandLine
) -> None:
    assert command_line("diff", pair[0], pair[0]).out.startswith("nothing differs: both are image")


def test_an_image_without_a_shell_is_read_from_outside(engine: Engine, builder: Builder) -> None:
    hello = ContextFile("hello", b"hello")
    bare = builder("FROM scratch", "COPY hello /hello", "ENV A=b", files=(hello,))
    found = inventory(engine, bare)
    assert found.env["A"] == "b"
    (missing,) = found.missing
    assert missing.startswith("what is inside: it does not start `sleep` and `sh` (")
    assert '"sleep": executable file not found' in missing
    assert [layer.size_bytes for layer in found.layers] == [5]


def test_what_is_no_image_and_no_cell(command_line: CommandLine) -> None:
    ended = command_line("diff", "no-such-thing", "cpu/debian12-none", code=3)
    assert "`no-such-thing` is neither an image on this engine nor one cell" in ended.err
