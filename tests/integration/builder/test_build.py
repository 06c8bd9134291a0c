"""Test `imagegen build`: images, tags, labels, logs, events, shared layers, up-to-date cells."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from imagegen.engine.images import local_images
from imagegen.model.labels import (
    LABEL_BASE,
    LABEL_CELL,
    LABEL_CONTRACT,
    LABEL_MATRIX,
    LABEL_RECIPE,
    LABEL_VALIDATED,
)

if TYPE_CHECKING:
    from command_line import Ended
    from tiny_family import TinyFamily, TinyMaker

pytestmark = pytest.mark.both_engines(long=True)


@pytest.fixture(scope="module")
def pair(make_tiny: TinyMaker) -> TinyFamily:
    """Make two cells that share a slow component and differ in the release of a quick one."""
    tiny = make_tiny()
    tiny.component("slow", "RUN sleep 1 && echo slow TOKEN > /slow", seconds="60")
    tiny.component("quick", "RUN echo {{ release.version }} TOKEN > /quick", ("1", "2"))
    tiny.check()
    tiny.write_matrix({"os": ["tiny12"], "quick": ["1", "2"]}, {"slow": "any", "check": "1"})
    return tiny


@pytest.fixture(scope="module")
def first(pair: TinyFamily) -> Ended:
    """Build the pair for the first time, both cells at once; later tests keep its images."""
    return pair.build("--jobs", "2", "--format", "json")


@pytest.mark.both_engines
def test_images_are_tagged_and_labelled(pair: TinyFamily, first: Ended) -> None:
    assert [row["outcome"] for row in first.result] == ["built", "built"]
    built = pair.built()
    assert sorted(built) == ["tiny12-1", "tiny12-2"]
    labels = built["tiny12-2"].labels
    assert labels["org.opencontainers.image.title"] == pair.image("tiny12-2")
    assert labels["org.opencontainers.image.version"]
    assert labels["org.opencontainers.image.licenses"] == "Apache-2.0"
    assert labels[LABEL_MATRIX] == pair.matrix
    assert labels[LABEL_CELL] == "tiny12-2"
    assert labels[LABEL_RECIPE].startswith("sha256:")
    base = local_images.find(pair.engine, "imagegen/base:tiny12")
    assert base is not None
    assert labels[LABEL_BASE] == base.id
    assert labels[LABEL_VALIDATED] == "the tag waits for validate --static"
    assert isinstance(json.loads(labels[LABEL_CONTRACT]), dict)
    assert built["tiny12-1"].labels[LABEL_RECIPE] != labels[LABEL_RECIPE]


def test_every_cell_has_a_log(pair: TinyFamily, first: Ended) -> None:
    for row in first.result:
        log = Path(row["log"])
        assert log.is_relative_to(pair.run.state)
        text = log.read_text()
        assert "RUN sleep 1" in text
        assert "tiny.verdict  passed" in text
        assert text.rstrip().endswith(f"built {row['id']}")


def test_json_events_end_in_a_result(pair: TinyFamily, first: Ended) -> None:
    *events, result = first.documents
    assert {event["event"] for event in events} <= {"step", "waits", "log", "done"}
    done = {event["cell"]: event["outcome"] for event in events if event["event"] == "done"}
    assert done == {f"{pair.matrix}/tiny12-{n}": "built" for n in (1, 2)}
    tagged = {tag: image.id for tag, image in pair.built().items()}
    assert {row["image"].partition(":")[2]: row["id"] for row in result} == tagged


def layers(family: TinyFamily) -> list[list[str]]:
    """Return the layers of each image, lowest first."""
    return [
        local_images.inspect(family.engine, image.id)["RootFS"]["Layers"]
        for image in family.built().values()
    ]


@pytest.mark.both_engines
@pytest.mark.usefixtures("first")
def test_side_by_side_the_slow_step_is_built_once(pair: TinyFamily) -> None:
    one, other = layers(pair)
    base = local_images.inspect(pair.engine, "imagegen/base:tiny12")["RootFS"]["Layers"]
    assert one[: len(base) + 1] == other[: len(base) + 1]


@pytest.mark.both_engines
@pytest.mark.usefixtures("first")
def test_a_second_build_finds_everything_up_to_date(pair: TinyFamily) -> None:
    before = pair.built()
    ended = pair.build()
    assert ended.err.count("up to date") == 2
    assert ended.out.count("up to date") == 2
    assert "2 of 2 images ready in " in ended.out
    assert pair.built() == before


def test_one_after_the_other_takes_what_is_shared_from_the_cache(make_tiny: TinyMaker) -> None:
    tiny = make_tiny()
    tiny.component("slow", "RUN echo slow TOKEN > /slow", seconds="60")
    tiny.component("quick", "RUN echo {{ release.version }} TOKEN > /quick", ("1", "2"))
    tiny.write_matrix({"os": ["tiny12"], "quick": ["1", "2"]}, {"slow": "any"})
    # Two commands: in a single one the second cell starts while the first is packed, and its log
    # says that the shared step ran.
    logs = [
        Path(tiny.build("--format", "json", "--no-validate", f"*-{n}").result[0]["log"]).read_text()
        for n in (1, 2)
    ]
    assert [text.count("= cached: [slow") for text in logs] == [0, 1]
    assert [text.count("> [slow") for text in logs] == [1, 0]
    assert [text.count("> [quick") for text in logs] == [1, 1]


@pytest.mark.usefixtures("first")
def test_an_image_removed_behind_its_back_is_built_again_in_plain_lines(pair: TinyFamily) -> None:
    kept = pair.built()["tiny12-1"].id
    local_images.remove(pair.engine, pair.image("tiny12-2"), force=True)
    ended = pair.build()
    logs = sorted(pair.run.state.rglob(f"{pair.matrix}-tiny12-2.log"))
    assert "no image is tagged" in logs[-1].read_text()
    assert pair.built()["tiny12-1"].id == kept
    assert "tiny12-2" in pair.built()
    assert "\x1b" not in ended.text
    assert "\r" not in ended.text
    assert f"{pair.matrix}/tiny12-1  up to date" in ended.err
    assert f"{pair.matrix}/tiny12-2  built" in ended.err


@pytest.mark.usefixtures("first")
def test_globs_choose_cells(pair: TinyFamily) -> None:
    assert "1 of 1 images ready" in pair.build("*-2").out
    lost = pair.build("*-3", code=3)
    assert "`*-3` matches no cell" in lost.err
    assert "tiny12-1" in lost.err


@pytest.mark.usefixtures("first")
def test_force_builds_without_the_cache(pair: TinyFamily) -> None:
    before = pair.built()["tiny12-1"].id
    row = pair.build("tiny12-1", "--force", "--no-validate", "--format", "json").result[0]
    text = Path(row["log"]).read_text()
    assert "--force" in text
    assert "= cached: [slow" not in text
    assert pair.built()["tiny12-1"].id == row["id"] != before
    assert pair.built()["tiny12-1"].labels[LABEL_VALIDATED] == "not validated: --no-validate"
