"""Bills of materials of real images, held against the formats' own validators."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from spdx_tools.spdx.parser.parse_anything import parse_file
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

from imagegen.sbom import FORMATS

if TYPE_CHECKING:
    from command_line import CommandLine
    from tiny_family import TinyFamily


def test_spdx_of_an_image(cpu_image: str, command_line: CommandLine) -> None:
    ended = command_line("sbom", cpu_image, "--out", "image.spdx.json")
    assert ended.out.startswith("image.spdx.json: spdx of image ")
    bill = parse_file(str(command_line.cwd / "image.spdx.json"))
    assert validate_full_spdx_document(bill) == []
    versions = {package.name: package.version for package in bill.packages}
    assert str(versions["libc6"]).startswith("2.36")
    assert versions["horovod"] == "0.28.1"
    assert versions["validate"] == "0.1.0"
    assert (
        versions[cpu_image]
        == command_line("diff", cpu_image, cpu_image, "--format", "json").result["id"]
    )


def test_cyclonedx_of_an_image_twice(cpu_image: str, command_line: CommandLine) -> None:
    first = command_line("sbom", cpu_image, "--as", "cyclonedx").out
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(first) is None
    for kept in (command_line.state / "sbom").iterdir():
        kept.unlink()
    assert command_line("sbom", cpu_image, "--as", "cyclonedx").out == first
    as_data = command_line("sbom", cpu_image, "--as", "cyclonedx", "--format", "json").result
    assert as_data == json.loads(first)


def test_a_build_that_passed_leaves_its_bills_and_says_what_else_it_left(tiny: TinyFamily) -> None:
    tiny.check()
    tiny.component("litter", "RUN echo TOKEN > /tmp/litter")
    tiny.write_matrix({"os": ["debian12"]}, {"check": "1", "litter": "1"})
    told = tiny.build().err
    left = "left by its build: temporary files (1, 13 B): /tmp/litter"
    assert f"warning: {tiny.matrix}/debian12: {left}" in told
    found = tiny.built()["debian12"]
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
