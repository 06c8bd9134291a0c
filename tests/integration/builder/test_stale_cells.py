"""Test what makes a cell stale: an edit rebuilds exactly the cells that it concerns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from imagegen.engine.images import local_images
from imagegen.model.labels import LABEL_HOW

if TYPE_CHECKING:
    from image_builder import Builder
    from tiny_family import TinyFamily, TinyMaker

pytestmark = pytest.mark.both_engines(long=True)

CELLS = ["left-1", "left-2", "right-1", "right-2"]


@pytest.fixture(scope="module")
def four(make_tiny: TinyMaker) -> TinyFamily:
    """Make a family of two axes: `side` with its variants as releases, `part` in two releases."""
    tiny = make_tiny()
    tiny.component("common", "RUN echo common TOKEN > /common", seconds="60")
    tiny.component("side", "RUN echo {{ release.variant }} TOKEN > /side", ("1", "2"))
    description = tiny.root / "dockerfiles/components/side/component.yaml"
    text = description.read_text().replace("version: '1'", "version: '1'\n  variant: left")
    description.write_text(text.replace("version: '2'", "version: '2'\n  variant: right"))
    tiny.component("part", "RUN echo {{ release.version }} TOKEN > /part", ("1", "2"))
    tiny.write_matrix(
        {"side": ["left", "right"], "part": ["1", "2"]}, {"os": "tiny12", "common": "1"}
    )
    tiny.build("--no-validate")
    return tiny


def stale(family: TinyFamily) -> dict[str, str]:
    """Return why each cell is stale by `imagegen plan`, and check that a build agrees."""
    planned = family.command("plan", "--format", "json").result["cells"]
    told = {row["cell"]: row["why"] for row in planned if row["stale"]}
    rows = family.build("--no-validate", "--format", "json").result
    assert [row["cell"].rpartition("/")[2] for row in rows if row["outcome"] == "built"] == [*told]
    assert all(row["outcome"] in ("built", "up-to-date") for row in rows)
    after = family.command("plan", "--format", "json").result["cells"]
    assert [(row["cell"], row["state"], row["why"]) for row in after] == [
        (cell, "up to date", "") for cell in CELLS
    ]
    return told


@pytest.mark.both_engines
def test_nothing_changed(four: TinyFamily) -> None:
    assert stale(four) == {}


@pytest.mark.both_engines
def test_a_template_concerns_the_cells_with_its_component(four: TinyFamily) -> None:
    template = four.root / "dockerfiles/components/common/install.j2"
    template.write_text(template.read_text() + "RUN echo more >> /common\n")
    why = "dockerfiles/components/common/install.j2:2 changed"
    told = four.command("plan", "--why").out
    assert told.endswith("".join(f"{cell}:\n  {why}\n" for cell in CELLS))
    assert stale(four) == dict.fromkeys(CELLS, f"its recipe changed: {why}")
    assert why not in four.command("plan", "--why").out


def test_a_branch_of_a_template_concerns_the_cells_that_take_it(four: TinyFamily) -> None:
    template = four.root / "dockerfiles/components/side/install.j2"
    branch = "{% if release.variant == 'left' %}\nRUN echo more >> /side\n{% endif %}\n"
    template.write_text(template.read_text() + branch)
    assert [*stale(four)] == ["left-1", "left-2"]


def test_a_release_row_concerns_the_cells_that_pin_it(four: TinyFamily) -> None:
    description = four.root / "dockerfiles/components/part/component.yaml"
    text = description.read_text()
    description.write_text(text.replace("version: '2'", "version: '2.1'"))
    told = stale(four)
    assert [*told] == ["left-2", "right-2"]
    assert {why.partition(" (")[0] for why in told.values()} == {
        "its recipe changed: part 2 -> 2.1"
    }


def test_a_comment_in_a_matrix_concerns_nobody(four: TinyFamily) -> None:
    matrix = four.root / "matrices" / f"{four.matrix}.yaml"
    matrix.write_text("# a comment\n" + matrix.read_text())
    assert stale(four) == {}


def test_a_changed_base_concerns_every_cell_on_it(
    make_tiny: TinyMaker, builder: Builder, token: str
) -> None:
    tiny = make_tiny()
    alias = f"imagegen/base:probe{int(token, 16)}"
    os = tiny.root / "dockerfiles/os" / f"{alias.rpartition(':')[2]}.yaml"
    os.write_text(
        f'id: {os.stem}\nfamily: debian\nrelease: {{ID: debian, VERSION_ID: "12"}}\n'
        f'suite: bookworm\nimage: debian:none-{token}\nglibc: "2.36"\n'
        "lib_dir: /usr/lib/x86_64-linux-gnu\nbootstrap: false\nsource: a test\n"
    )
    tiny.component("part", "RUN echo TOKEN > /part")
    tiny.write_matrix({"os": ["tiny12", os.stem]}, {"part": "1"})
    try:
        for number in (1, 2):
            ref = f"imagegen/test:{token}-{number}"
            base = builder(f"RUN echo {token} {number}", f"LABEL {LABEL_HOW}=", tag=ref)
            local_images.tag(tiny.engine, base, alias)
            rows = tiny.build("--no-validate", "--format", "json").result
            expected = ["built", "built"] if number == 1 else ["up-to-date", "built"]
            assert [row["outcome"] for row in rows] == expected
        plan = tiny.command("plan", "--format", "json").result["cells"]
        assert [row["stale"] for row in plan] == [False, False]
    finally:
        local_images.remove(tiny.engine, alias)
