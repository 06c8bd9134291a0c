"""Test bills of materials of real images against the formats' own validators."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from spdx_tools.spdx.parser.parse_anything import parse_file
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

from imagegen.inspection.sbom import FORMATS
from imagegen.model.labels import LABEL_PARTS
from imagegen.model.recipe import EXPECTATION_PATH, ContextFile

if TYPE_CHECKING:
    from command_line import CommandLine
    from image_builder import Builder
    from tiny_family import TinyFamily


PROMISE = {"components": {"openmpi": {"version": "4.1.8", "origin": "Open MPI 4.1.8, compiled"}}}
DIST = "/usr/lib/python3/dist-packages/tiny_part-1.2.dist-info"
SHA = "ab" * 32


@pytest.fixture
def image(builder: Builder, token: str) -> str:
    """Build an image with a wheel and with a component that has no package."""
    parts = json.dumps({"openmpi 4.1.8": SHA})
    promise = ContextFile("image.json", json.dumps(PROMISE).encode())
    return builder(
        f"RUN mkdir -p {DIST} && echo pip > {DIST}/INSTALLER # {token}",
        f"COPY image.json {EXPECTATION_PATH}",
        f"LABEL {LABEL_PARTS}='{parts}'",
        files=(promise,),
    )


def test_spdx_of_an_image(image: str, command_line: CommandLine) -> None:
    ended = command_line("sbom", image, "--out", "image.spdx.json")
    assert ended.out == f"image.spdx.json: spdx of image {image[7:19]}\n"
    bill = parse_file(str(command_line.cwd / "image.spdx.json"))
    assert validate_full_spdx_document(bill) == []
    packages = {package.name: package for package in bill.packages}
    assert str(packages["libc6"].version).startswith("2.36")
    assert packages["tiny_part"].version == "1.2"
    assert packages["openmpi"].checksums[0].value == SHA
    assert packages[image].version == image


def test_cyclonedx_of_an_image_twice(image: str, command_line: CommandLine) -> None:
    first = command_line("sbom", image, "--as", "cyclonedx").out
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(first) is None
    for kept in (command_line.state / "sbom").iterdir():
        kept.unlink()
    assert command_line("sbom", image, "--as", "cyclonedx").out == first
    as_data = command_line("sbom", image, "--as", "cyclonedx", "--format", "json").result
    assert as_data == json.loads(first)


def test_a_build_that_passed_leaves_its_bills_and_says_what_else_it_left(tiny: TinyFamily) -> None:
    tiny.check()
    tiny.component("litter", "RUN echo TOKEN > /tmp/litter")
    tiny.write_matrix({"os": ["tiny12"]}, {"check": "1", "litter": "1"})
    told = tiny.build().err
    left = "left by its build: temporary files (1, 13 B): /tmp/litter"
    assert f"warning: {tiny.matrix}/tiny12: {left}" in told
    found = tiny.built()["tiny12"]
    kept = sorted(path.name for path in (tiny.run.state / "sbom").iterdir())
    assert kept == [f"{found.id[7:]}.cdx.json", f"{found.id[7:]}.spdx.json"]
    log = next(iter(tiny.run.state.rglob("*.log"))).read_text()
    assert f"sbom {tiny.run.state / 'sbom' / kept[0]}" in log
    assert f"  sbom {tiny.run.state / 'sbom' / kept[0]}" in tiny.run("history", "1").out
    printed = tiny.run("sbom", found.tags[0]).out
    assert printed == (tiny.run.state / "sbom" / kept[1]).read_text()


@pytest.mark.parametrize("kind", FORMATS)
def test_what_is_no_image(command_line: CommandLine, kind: str) -> None:
    ended = command_line("sbom", "no-such-thing", "--as", kind, code=3)
    assert "neither an image on this engine nor one cell" in ended.err
    assert not Path(command_line.state, "sbom").exists()
