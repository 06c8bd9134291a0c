"""Test `imagegen nightly`: build, validate, publish, report; nothing to do; a broken cell."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from registry import digest_there

if TYPE_CHECKING:
    from typing import Any

    from tiny_family import TinyFamily


def summary(family: TinyFamily) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        (family.run.cwd / "out/nightly/summary.json").read_text(encoding="utf-8")
    )
    return found


def markdown(family: TinyFamily) -> str:
    return (family.run.cwd / "out/nightly/summary.md").read_text(encoding="utf-8")


def test_three_nights(tiny: TinyFamily, registry: str) -> None:
    tiny.component("part", "RUN echo {{ release.version }} TOKEN > /part", ("1", "2"))
    tiny.check()
    tiny.write_matrix({"os": ["tiny12"], "part": ["1", "2"]}, {"check": "1"})
    to = f"{registry}/nightly"
    references = [f"{to}/{tiny.token}:tiny12-{number}" for number in (1, 2)]

    first = tiny.command("nightly", "--to", to)
    assert "2 of 2 images are new, all of them passed" in first.out
    written = summary(tiny)
    assert (written["broken"], written["changed"]) == (0, 2)
    for cell, reference in zip(written["cells"], references, strict=True):
        assert (cell["build"], cell["validation"]) == ("built", "passed")
        assert (cell["publication"], cell["digest"]) == ("published", digest_there(reference))
    assert markdown(tiny).startswith(f"# Nightly {tiny.matrix}\n")
    assert "2 of 2 images are new" in markdown(tiny)
    suites = ElementTree.parse(tiny.run.cwd / "out/nightly/validations.xml").getroot()
    assert [suite.get("failures") for suite in suites] == ["0", "0"]
    before = [digest_there(reference) for reference in references]

    begun = time.monotonic()
    second = tiny.command("nightly", "--to", to)
    assert time.monotonic() - begun < 3
    assert "nothing to do: all 2 images are built, validated and published" in second.out
    assert summary(tiny)["changed"] == 0
    assert "Nothing to do" in markdown(tiny)
    assert [cell["publication"] for cell in summary(tiny)["cells"]] == ["there already"] * 2

    broken = "\n".join(
        [
            "RUN echo new {{ release.version }} TOKEN > /part",
            "{% if release.version == '2' %}",
            "RUN echo what went wrong TOKEN && exit 9",
            "{% endif %}",
        ]
    )
    tiny.component("part", broken, ("1", "2"))
    third = tiny.command("nightly", "--to", to, code=6)
    assert "1 of 2 cells are broken" in third.out
    assert f"error: cell `{tiny.matrix}/tiny12-2` is broken: build failed" in third.err
    assert f"what went wrong {tiny.token}" in third.err
    cells = summary(tiny)["cells"]
    assert [cell["build"] for cell in cells] == ["built", "failed"]
    assert [cell["publication"] for cell in cells] == ["published", ""]
    assert any(f"what went wrong {tiny.token}" in line for line in cells[1]["detail"])
    assert f"## {tiny.matrix}/tiny12-2" in markdown(tiny)
    assert f"what went wrong {tiny.token}" in markdown(tiny)
    assert digest_there(references[0]) == cells[0]["digest"] != before[0]
    assert digest_there(references[1]) == before[1]


def test_a_cell_that_fails_its_checks_is_not_published(tiny: TinyFamily, registry: str) -> None:
    tiny.check()
    tiny.write_matrix({"os": ["tiny12"], "check": ["1", "2"]}, {})
    to = f"{registry}/nightly"
    ended = tiny.command("nightly", "--to", to, "--format", "json", code=6)
    result = ended.documents[-2]
    assert [cell["build"] for cell in result["cells"]] == ["built", "failed"]
    assert "tiny.verdict: the verdict of release 2" in result["cells"][1]["detail"]
    assert ended.documents[-1]["exit_code"] == 6
    assert digest_there(f"{to}/{tiny.token}:tiny12-1") == result["cells"][0]["digest"]
    assert digest_there(f"{to}/{tiny.token}:tiny12-2") is None


def test_a_registry_that_is_not_there_keeps_what_was_built(tiny: TinyFamily) -> None:
    tiny.check()
    tiny.write_matrix({"os": ["tiny12"]}, {"check": "1"})
    ended = tiny.command("nightly", "--to", "127.0.0.1:1/team", code=8)
    assert "127.0.0.1:1" in ended.err
    assert sorted(tiny.built()) == ["tiny12"]
