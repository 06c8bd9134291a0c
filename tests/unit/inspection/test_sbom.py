"""Test bills of materials: their contents, and that the same image gives the same bytes."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from imagegen.builder import cell as building
from imagegen.engine.images.contents import ImageContents, Package
from imagegen.engine.images.inventory import Inventory
from imagegen.events import events
from imagegen.inspection.sbom import FORMATS, document, items
from imagegen.inspection.sbom_files import (
    billed_images,
    kept_sboms,
    remove_sboms,
    sbom_path,
    write_sboms,
)
from imagegen.model.labels import LABEL_PARTS
from imagegen.model.validation import ValidationRecord

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.builder.prepare import BuildState
    from imagegen.engine.client import Engine
    from imagegen.events.events import Event
    from imagegen.model.recipe import Recipe

ENGINE = cast("Engine", SimpleNamespace())
SHA = "ab" * 32
COMPONENTS = {
    "openmpi": {"version": "4.1.8", "origin": "Open MPI 4.1.8, compiled into /usr/local/openmpi"},
    "torch": {"version": "2.6.0", "origin": "wheel torch 2.6.0"},
    "python": {"version": "3.13.5", "origin": "apt python3 of Debian 13"},
}
IMAGE = Inventory(
    ref="imagegen/x:y",
    id=f"sha256:{'0' * 64}",
    created="2026-11-21T16:46:32.222119596Z",
    size_bytes=1,
    labels={
        LABEL_PARTS: json.dumps({"openmpi 4.1.8": SHA, "mlnx-ofed 5.4": "unverified"}),
        "org.opencontainers.image.title": "imagegen/x:z",
    },
    env={},
    layers=(),
    contents=ImageContents(
        packages=(
            Package("conda", "python", "3.8.13"),
            Package("deb", "libgcc-s1", "14.2.0-19", "amd64", "gcc-14 14.2.0-19"),
            Package("deb", "libc6", "2.41-12+deb13u4", "amd64", "glibc 2.41-12+deb13u4"),
            Package("deb", "perl", "5.40+b1", "amd64", "perl 5.40"),
            Package("pypi", "jaraco_Text", "1!2.0", path="/a/x.dist-info"),
            Package("pypi", "jaraco_Text", "1!2.0", path="/b/x.dist-info"),
        ),
        os={"ID": "debian", "VERSION_ID": "13"},
        promise={"components": COMPONENTS},
    ),
)
BARE = replace(
    IMAGE, labels={}, contents=ImageContents(), missing=("what is inside: nothing",), created=""
)


def test_everything_in_an_image_has_a_package_url() -> None:
    assert [row.purl for row in items(IMAGE)] == [
        "pkg:conda/python@3.8.13",
        "pkg:deb/debian/libgcc-s1@14.2.0-19?arch=amd64&distro=debian-13&upstream=gcc-14",
        "pkg:deb/debian/libc6@2.41-12%2Bdeb13u4?arch=amd64&distro=debian-13&upstream=glibc",
        "pkg:deb/debian/perl@5.40%2Bb1?arch=amd64&distro=debian-13&upstream=perl%405.40",
        "pkg:pypi/jaraco-text@1%212.0",
        "pkg:pypi/jaraco-text@1%212.0",
        "pkg:generic/openmpi@4.1.8",
        "pkg:generic/mlnx-ofed@5.4",
    ]


def test_no_two_things_have_one_name_and_only_a_real_sum_is_told() -> None:
    rows = items(IMAGE)
    assert len({row.ref for row in rows}) == len(rows)
    assert {row.name: row.sha256 for row in rows if row.sha256} == {"openmpi": SHA}
    assert [row.comment for row in rows if row.name == "jaraco_Text"] == [
        "installed in /a",
        "installed in /b",
    ]


@pytest.mark.parametrize("kind", FORMATS)
def test_the_same_image_gives_the_same_bytes_under_every_tag(kind: str) -> None:
    assert document(IMAGE, kind) == document(replace(IMAGE, ref="other:tag"), kind)
    assert document(IMAGE, kind) != document(replace(IMAGE, id=f"sha256:{'1' * 64}"), kind)


def test_spdx() -> None:
    made = json.loads(document(IMAGE, "spdx"))
    assert made["name"] == "imagegen/x:z"
    assert made["creationInfo"]["created"] == "2026-11-21T16:46:32Z"
    assert made["documentNamespace"] == f"urn:imagegen:sbom:{IMAGE.id}"
    ids = [package["SPDXID"] for package in made["packages"]]
    contained = [one["relatedSpdxElement"] for one in made["relationships"][1:]]
    assert (ids[0], ids[1:]) == ("SPDXRef-image", contained)
    assert made["packages"][-2]["checksums"] == [{"algorithm": "SHA256", "checksumValue": SHA}]


def test_cyclonedx() -> None:
    made = json.loads(document(IMAGE, "cyclonedx"))
    assert made["metadata"]["timestamp"] == "2026-11-21T16:46:32Z"
    assert made["serialNumber"] == "urn:uuid:36c875c9-938e-5849-a79f-e470ae030c97"
    refs = [one["bom-ref"] for one in made["components"]]
    assert made["dependencies"] == [{"ref": "image", "dependsOn": refs}]
    assert made["components"][-2]["hashes"] == [{"alg": "SHA-256", "content": SHA}]


def test_an_image_that_could_not_be_read_says_so() -> None:
    spdx, cyclonedx = (json.loads(document(BARE, kind)) for kind in FORMATS)
    assert spdx["name"] == BARE.id
    assert spdx["creationInfo"]["created"] == "1970-01-01T00:00:00Z"
    assert spdx["creationInfo"]["comment"] == "not read: what is inside: nothing"
    (told,) = cyclonedx["metadata"]["properties"]
    assert told["value"] == "what is inside: nothing"


def test_a_bill_is_named_by_its_image(tmp_path: Path) -> None:
    path = sbom_path(tmp_path, IMAGE.id, "cyclonedx")
    assert path == tmp_path / "sbom" / f"{'0' * 64}.cdx.json"


def judged(monkeypatch: pytest.MonkeyPatch, found: Inventory) -> list[str]:
    """Return what is reported for an image that passes the gate, and what its log has."""
    record = ValidationRecord(IMAGE.id, "t", "static", True, {}, 1.0)
    gate = SimpleNamespace(judge=lambda *_: record)
    monkeypatch.setattr(building, "inventory", lambda *_, **__: found)
    spec = SimpleNamespace(cell=SimpleNamespace(id="m/c"), tag="t")
    emitted: list[Event] = []
    state = SimpleNamespace(engine=ENGINE, gate=gate, stopping=False, sink=emitted.append)
    recipe = cast("Recipe", SimpleNamespace(spec=spec))
    assert building._judge(cast("BuildState", state), IMAGE.id, recipe) == ()
    begins, validated, *rest, ends = emitted
    assert (begins, validated, ends) == (
        events.StepStarted("m/c", "validate --static", "validate --static"),
        events.ImageValidated("m/c", record),
        events.StepEnded("m/c", "validate --static"),
    )
    return [
        one.text if isinstance(one, events.Note) else f"log: {cast('events.CellLogged', one).line}"
        for one in rest
    ]


def test_an_image_that_passed_gets_its_bills(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("IMAGEGEN_STATE", str(tmp_path))
    left = replace(IMAGE, contents=replace(IMAGE.contents, files={"/tmp/a": 12}))
    paths = [sbom_path(tmp_path, IMAGE.id, kind) for kind in FORMATS]
    assert judged(monkeypatch, left) == [
        "warning: m/c: left by its build: temporary files (1, 12 B): /tmp/a",
        *(f"log: sbom {path}" for path in paths),
        "log: warning: left by its build: temporary files (1, 12 B): /tmp/a",
    ]
    assert kept_sboms(IMAGE.id, tmp_path) == tuple(paths)
    assert kept_sboms("sha256:other", tmp_path) == ()
    assert [path.read_bytes() for path in paths] == [document(IMAGE, kind) for kind in FORMATS]


def test_bills_are_found_and_removed_by_image(tmp_path: Path) -> None:
    assert billed_images(tmp_path) == ()
    other = replace(IMAGE, id=f"sha256:{'1' * 64}")
    for one in (IMAGE, other):
        write_sboms(one, tmp_path)
    (tmp_path / "sbom" / ".half.spdx.json.x").write_text("")
    (tmp_path / "sbom" / "notes.txt").write_text("")
    assert sorted(billed_images(tmp_path)) == [IMAGE.id, other.id]
    remove_sboms(IMAGE.id, tmp_path)
    assert billed_images(tmp_path) == (other.id,)
    assert kept_sboms(IMAGE.id, tmp_path) == ()


def test_a_bill_that_cannot_be_made_stops_no_tag(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "sbom").write_text("in the way")
    monkeypatch.setenv("IMAGEGEN_STATE", str(tmp_path))
    (told,) = judged(monkeypatch, IMAGE)
    assert told.startswith("log: no sbom: error: cannot write `")
