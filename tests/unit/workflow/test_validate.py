"""Test the page of `imagegen validate`: every image is judged, and all results are written down."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, cast
from xml.etree import ElementTree

import jsonschema
import pytest

from imagegen.catalog.proofs import read_proofs
from imagegen.config.payload import Payload
from imagegen.console.console import make_console
from imagegen.engine import client
from imagegen.errors import ConfigError, EngineError, ValidationError
from imagegen.journal.journal import open_journal
from imagegen.model.validation import Proof
from imagegen.validation.reports import of_problem, of_record
from imagegen.workflow import validate as page
from imagegen.workflow.validate import ValidateOptions, row_of, validate
from unit.validation.test_reports import SCHEMA, record
from validate.check import FAILED, PASSED

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from imagegen.engine.client import Engine
    from imagegen.model.validation import ValidationRecord

pytestmark = pytest.mark.usefixtures("small")

ENGINE = cast("Engine", object())


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Run `validate` on the images a, b and c, with the results that a function gives."""

    def call(validated: Callable[[str], ValidationRecord], *images: str) -> None:
        monkeypatch.setattr(client, "connect", lambda: ENGINE)
        monkeypatch.setattr(page, "validate_open", lambda _, ref, *__, **___: validated(ref))
        files = {"json_file": tmp_path / "r.json", "junit": tmp_path / "r.xml"}
        options = ValidateOptions(images or ("a", "b", "c"), **files)  # type: ignore[arg-type]
        validate(options, make_console("plain"))

    return call


def test_an_image_that_validate_cannot_run_in_stops_no_other(
    judge: Callable[..., None], tmp_path: Path
) -> None:
    def validated(reference: str) -> ValidationRecord:
        if reference == "b":
            raise ValidationError.of("`b` has no `validate`", evidence=["sh: 1"], hint="build it")
        return record(reference, os=PASSED)

    with pytest.raises(ValidationError) as raised:
        judge(validated)
    assert [one.text for one in raised.value.problems] == ["`b` has no `validate`"]
    document = json.loads((tmp_path / "r.json").read_text())
    assert [one["exit_code"] for one in document["images"]] == [0, 1, 0]
    broken = document["images"][1]
    jsonschema.validate(broken, SCHEMA)
    assert (broken["counts"]["error"], broken["checks"][0]["remedy"]) == (1, "build it")
    errors = [suite.get("errors") for suite in ElementTree.parse(tmp_path / "r.xml").getroot()]
    assert errors == ["0", "1", "0"]


def test_what_ends_a_run_early_leaves_the_reports_that_there_are(
    judge: Callable[..., None], tmp_path: Path
) -> None:
    def validated(reference: str) -> ValidationRecord:
        if reference == "b":
            raise EngineError.of("the engine is gone")
        return record(reference, os=PASSED)

    with pytest.raises(EngineError):
        judge(validated)
    assert len(json.loads((tmp_path / "r.json").read_text())["images"]) == 1


def test_the_records_of_cells_and_images_are_kept(judge: Callable[..., None]) -> None:
    """A cell becomes its image, another name is an image, and each image is judged once."""
    tag = "imagegen/small:debian12-1.13.1-core"
    judge(lambda ref: record(ref, os=PASSED), "debian12-core", "mine:1", tag)
    journal = open_journal()
    assert [journal.validation_of(f"sha256:{ref}") is not None for ref in (tag, "mine:1")] == [
        True,
        True,
    ]
    assert [(run.verb, run.exit_code) for run in journal.history(2)] == [("validate", 0)]


def test_an_image_that_did_not_pass_is_an_error(judge: Callable[..., None]) -> None:
    with pytest.raises(ValidationError) as raised:
        judge(lambda ref: record(ref, os=FAILED if ref == "c" else PASSED))
    assert [one.text for one in raised.value.problems] == ["`c` did not pass"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (ValidateOptions(), "no image named"),
        (
            ValidateOptions(("a",), soft_roce=True, only="nccl"),
            "`--soft-roce` runs suites of its own choice",
        ),
        (
            ValidateOptions(("a",), prove=True, only="torch"),
            "`--prove` needs a run of all checks, or of all static ones, in images",
        ),
        (
            ValidateOptions(prove=True, hosts="docker://a"),
            "`--prove` needs a run of all checks, or of all static ones, in images",
        ),
    ],
)
def test_options_that_say_nothing_together_are_refused(options: ValidateOptions, text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        validate(options, make_console("plain"))
    assert raised.value.problems[0].text == text


def test_options_are_those_of_validate_in_the_image() -> None:
    options = ValidateOptions(only="nccl", require="gpu=8", ranks=2, benchmark=True, static=True)
    options = replace(options, via="ddp", length="reference", model="vgg16")
    assert options.arguments == (
        "--only",
        "nccl",
        "--require",
        "gpu=8",
        "--ranks",
        "2",
        "--via",
        "ddp",
        "--model",
        "vgg16",
        "--length",
        "reference",
        "--benchmark",
    )
    assert options.request.tier == "partial"


def test_the_result_for_a_program_has_every_image() -> None:
    good = record("cpu:a", os=PASSED)
    row = row_of(of_record(good), good)
    assert (row["image"], row["passed"], row["tier"]) == ("cpu:a", True, "full")
    assert row["report"] == of_record(good)
    error = ValidationError.of("it died")
    row = row_of(of_problem("cpu:b", error.problems[0]), None)
    assert (row["image"], row["passed"], row["id"]) == ("cpu:b", False, "")


def test_what_passed_and_what_failed_is_proved(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(client, "connect", lambda: ENGINE)
    outcomes = {"a": PASSED, "b": FAILED}
    judged = {name: record(name, os=outcome) for name, outcome in outcomes.items()}
    monkeypatch.setattr(page, "validate_open", lambda _, ref, *__, **___: judged[ref])

    def proof(_: Engine, of: ValidationRecord) -> Proof:
        day = "2026-11-22T12:00:00Z"
        pins = {"os": of.tag}
        return Proof("mine", of.tag, day, of.tier, of.passed, of.image_id, "", "0.1.0", pins, ())

    monkeypatch.setattr(page, "proof_of_image", proof)
    with pytest.raises(ValidationError):
        validate(ValidateOptions(("a", "b"), prove=True), make_console("plain"))
    found = read_proofs(Payload((tmp_path,), ()), [])
    assert {one.cell: one.passed for one in found} == {"a": True, "b": False}
