"""Test the combinations that are known to fail: their files, and what the checks get of them."""

from __future__ import annotations

import json
from datetime import date
from typing import TYPE_CHECKING

import pytest

from imagegen.catalog.known_bad import known_bad_json, read_known_bad, unknown_names
from imagegen.catalog.reader import read_catalog
from imagegen.config.payload import Payload
from imagegen.errors import ConfigError
from unit.conftest import REPOSITORY
from validate.probes import known_bad

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from imagegen.workflow.project import Project
    from unit.conftest import Ended

ROW = """\
symptom: it hangs
components: {nccl: "2.17"}
workaround: take another one
where: build
source: [https://example.org/1]
expires: "2027-01-01"
"""


def payload_with(folder: Path, text: str) -> Payload:
    (folder / "dockerfiles/known-bad").mkdir(parents=True)
    (folder / "dockerfiles/known-bad/mine.yaml").write_text(text)
    return Payload((folder, REPOSITORY), (REPOSITORY,))


def test_every_row_has_a_public_source_and_a_day(project: Project) -> None:
    rows = project.catalog.known_bad
    assert len(rows) >= 10
    for row in rows:
        assert all(one.startswith("https://") for one in row.source), row.name
        assert date.fromisoformat(row.expires) > date(2026, 11, 22), row.name
    assert not list(unknown_names(project.catalog))


def test_a_row_of_an_overlay_is_read(tmp_path: Path) -> None:
    found = read_known_bad(payload_with(tmp_path, ROW), [])
    assert "mine" in [row.name for row in found]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (("nccl:", "ncccl:"), "`ncccl` is no component"),
        (("where: build", "where: somewhere"), "where"),
        (('{nccl: "2.17"}', "{}"), "names nothing that is bad"),
        (("https://example.org/1", "a friend"), "source"),
    ],
)
def test_a_wrong_row_is_an_error(change: tuple[str, str], text: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        read_catalog(payload_with(tmp_path, ROW.replace(*change)))
    assert any(text in f"{one.key} {one.text}" for one in error.value.problems)


def test_images_get_what_they_can_show(project: Project) -> None:
    rows = {row["name"]: row for row in json.loads(known_bad_json(project.catalog))}
    hosts = [row.name for row in project.catalog.known_bad if "host" in row.packages]
    assert hosts
    assert set(hosts) == {name for name, row in rows.items() if "host" in row["packages"]}
    assert not set(hosts) & {row["name"] for row in known_bad.rows()}
    assert set(hosts) == {row["name"] for row in known_bad.host_rows()}
    packages = rows["nccl-2.17-nvls"]["components"]["nccl"]["packages"]
    assert ["wheel", "nvidia-nccl-cu*"] in packages


def test_they_are_listed(run: Callable[..., Ended]) -> None:
    text = run("catalog", "--known-bad").out
    assert "openmpi-3.1.3-horovod: openmpi 3.1.3, horovod any" in text
    assert "https://github.com/horovod/horovod/issues/638" in text
    [row] = [
        one
        for one in json.loads(run("catalog", "--known-bad", "--format", "json").out)
        if one["name"] == "two-nccl-wheels"
    ]
    assert row["several"] == "nvidia-nccl-cu*"
    assert row["expired"] is False
