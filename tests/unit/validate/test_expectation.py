"""Test what an image is held to, and the words for images without a recipe."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from unit.validate.trees import expected
from validate import cli, expectation
from validate.check import FAILED, Check, CheckResult
from validate.expected import Expected
from validate.remedy import in_image, in_shell

if TYPE_CHECKING:
    from pathlib import Path

CHECK = Check("torch.version", "", "fail", "static", "", in_shell(""))
FOUND = CheckResult(CHECK, "torch", FAILED, "torch 2, the recipe says 1", "not the recipe's")


def foreign(path: str = "") -> Expected:
    return Expected({"inferred": True, "components": {}, "suites": [], "os": {}}, path)


@pytest.fixture
def no_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Be in an image of another maker."""
    monkeypatch.setattr(expectation, "DEFAULT_PATH", str(tmp_path / "no.json"))
    return tmp_path / "no.json"


def test_without_a_file_what_is_found_counts(no_file: Path, tmp_path: Path) -> None:
    found = expectation.expectation(str(no_file), str(tmp_path))
    assert found.inferred
    assert found.path == ""


def test_a_file_that_is_there_counts(no_file: Path, tmp_path: Path) -> None:
    no_file.write_text(json.dumps(expected(tmp_path).data))
    assert not expectation.expectation(str(no_file), str(tmp_path)).inferred


def test_the_words_are_of_the_image(tmp_path: Path) -> None:
    one = FOUND.with_remedy(in_image("imagegen build   # on one release"))
    said = expectation.in_its_words(one, foreign())
    assert (said.measured, said.cause) == ("torch 2, its package says 1", "not the image's")
    assert said.remedy == "docker build .   # on one release"
    assert expectation.in_its_words(one, expected(tmp_path)) == one


def test_the_words_are_of_a_file_that_was_written_before() -> None:
    said = expectation.in_its_words(FOUND, foreign("image.json"))
    assert said.measured == "torch 2, the file says 1"


def test_infer_prints_an_expectation_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["--infer", "--root", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out)["inferred"] is True
