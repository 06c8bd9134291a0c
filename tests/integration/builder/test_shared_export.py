"""Test a large new layer that cells share: one cell makes and packs it before others start."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from imagegen.engine.images import local_images
from imagegen.model.labels import LABEL_UNTIL

if TYPE_CHECKING:
    from tiny_family import TinyFamily

pytestmark = pytest.mark.both_engines

BIG = "RUN head -c 510000000 /dev/zero > /big && echo TOKEN >> /big"
EXPORT = "exporting to image"


def test_one_cell_packs_it_before_the_others_begin_and_nothing_of_that_stays(
    tiny: TinyFamily,
) -> None:
    tiny.component("big", BIG, seconds="60", megabytes="510")
    tiny.component("quick", "RUN echo {{ release.version }} TOKEN > /quick", ("1", "2", "3"))
    tiny.write_matrix({"os": ["tiny12"], "quick": ["1", "2", "3"]}, {"big": "any"})
    ended = tiny.build("--jobs", "3", "--format", "json", "--no-validate")

    assert [row["outcome"] for row in ended.result] == ["built"] * 3
    assert sorted(tiny.built()) == ["tiny12-1", "tiny12-2", "tiny12-3"]
    logs = {row["cell"]: Path(row["log"]).read_text() for row in ended.result}
    assert sum(log.count("> [big 1/1]") for log in logs.values()) == 1
    exports = {cell: log.count(f"> {EXPORT}") for cell, log in logs.items()}
    assert sorted(exports.values()) == [1, 1, 2]
    packer = max(exports, key=lambda cell: exports[cell])
    told = [event for event in ended.documents[:-1] if event["event"] == "step"]
    packed = next(at for at, one in enumerate(told) if one["text"].startswith(EXPORT))
    assert {event["cell"] for event in told[: packed + 1]} == {packer}
    left = local_images.list_labelled(tiny.engine, LABEL_UNTIL)
    assert [one.id for one in left if tiny.matrix in one.labels[LABEL_UNTIL]] == []

    again = tiny.build("--format", "json", "--no-validate")
    assert [row["outcome"] for row in again.result] == ["up-to-date"] * 3
