"""Test one night, with build, validation and registry replaced and a real journal."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any, cast

import pytest

from imagegen.console.console import make_console
from imagegen.console.night_report import as_json, as_markdown
from imagegen.engine.registry import remote_images
from imagegen.errors import PublishError, ValidationError
from imagegen.journal.journal import open_journal
from imagegen.model.build import BuildRecord
from imagegen.model.image import exact_pins
from imagegen.model.night import CellReport, NightReport
from imagegen.model.validation import ValidationRecord
from imagegen.workflow import nightly
from imagegen.workflow.build import ActiveRun
from imagegen.workflow.nightly import validate_and_publish
from imagegen.workflow.project import Project

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.engine.client import Engine
    from imagegen.model.validation import Report
    from unit.conftest import Overlay

ENGINE = cast("Engine", object())
LARGE = "2 GB is over the size budget of 1 GB: 1.2 x the last good image, 900 MB"
TO = "localhost:5000/team"


class World:
    """Hold four cells that build, validate and publish, except those in `unbuilt` and `failing`."""

    def __init__(self, small: Overlay, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        project = Project(small.root)
        self.recipes = project.recipes(project.family("small"))
        self.book = open_journal(tmp_path / "journal.db")
        self.unbuilt: set[str] = set()
        self.failing: set[str] = set()
        self.dying: set[str] = set()
        self.up_to_date = False
        self.too_large = ""
        self.validated: list[str] = []
        self.tags: dict[str, str] = {}
        monkeypatch.setattr(nightly, "validate_image", self.validate)
        monkeypatch.setattr(remote_images, "push", lambda _, image_id, *__: f"digest of {image_id}")
        monkeypatch.setattr(remote_images, "digest_of", lambda ref, _: self.tags.get(ref))
        monkeypatch.setattr(remote_images, "move_tag", self.move)

    def build(self) -> list[BuildRecord]:
        return [self.built(recipe.spec.cell.id, recipe.spec.tag) for recipe in self.recipes]

    def built(self, cell: str, tag: str) -> BuildRecord:
        if cell in self.unbuilt:
            return BuildRecord(cell, tag, "sha256:r", "failed", cause="disk", detail=("no space",))
        outcome = "up-to-date" if self.up_to_date else "built"
        return BuildRecord(
            cell,
            tag,
            "sha256:r",
            cast("Any", outcome),
            image_id=f"sha256:{tag}",
            seconds=2.0,
            detail=(LARGE,) if cell == self.too_large else (),
        )

    def validate(self, _: Engine, ref: str, *__: Any) -> ValidationRecord:
        self.validated.append(ref)
        if ref in self.dying:
            raise ValidationError.of("the container died")
        passed = ref not in self.failing
        outcome = "passed" if passed else "failed"
        check = {
            "id": "torch.version",
            "suite": "torch",
            "outcome": outcome,
            "measured": "1.0",
            "remedy": "",
        }
        report = cast("Report", {"checks": [check], "exit_code": 0 if passed else 1})
        return ValidationRecord(f"sha256:{ref}", ref, "full", passed, {}, 1.0, report)

    def move(self, repository: str, digest: str, tag: str, _: Engine) -> None:
        self.tags[f"{repository}:{tag}"] = digest

    def night(self) -> NightReport:
        console = make_console("plain", io.StringIO(), io.StringIO())
        run = ActiveRun(self.book.start_run("nightly", []), self.book, console)
        return validate_and_publish(self.recipes, self.build(), ENGINE, TO, run)


@pytest.fixture
def world(small: Overlay, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> World:
    return World(small, monkeypatch, tmp_path)


def states(report: NightReport) -> set[tuple[str, str, str]]:
    return {(cell.build, cell.validation, cell.publication) for cell in report.cells}


def test_a_first_night_builds_validates_and_publishes_all(world: World) -> None:
    report = world.night()
    assert states(report) == {("built", "passed", "published")}
    assert report.headline == "4 of 4 images are new, all of them passed"
    assert len(world.tags) == 4


def test_a_second_night_finds_nothing_to_do_and_says_so(world: World) -> None:
    world.night()
    world.up_to_date, world.validated = True, []
    report = world.night()
    assert states(report) == {("up-to-date", "passed before", "there already")}
    assert (report.changed, world.validated) == (0, [])
    assert report.headline == ("nothing to do: all 4 images are built, validated and published")


def test_a_cell_that_was_not_built_stops_no_other(world: World) -> None:
    world.unbuilt = {"small/debian12-core"}
    report = world.night()
    assert report.headline == "1 of 4 cells are broken"
    assert [cell.cell for cell in report.broken] == ["small/debian12-core"]
    assert len(world.tags) == 3
    assert len(world.validated) == 3


def test_an_image_that_fails_is_not_published_and_the_others_are(world: World) -> None:
    broken, dead = (recipe.spec.tag for recipe in world.recipes[:2])
    world.failing, world.dying = {broken}, {dead}
    report = world.night()
    assert [cell.image for cell in report.broken] == [broken, dead]
    assert report.broken[0].detail == ("torch.version: 1.0",)
    assert report.broken[1].detail == ("the container died",)
    assert len(world.tags) == 2


def test_every_validation_has_a_report_also_an_earlier_one(world: World) -> None:
    dead, unbuilt = (recipe.spec for recipe in world.recipes[:2])
    world.dying, world.unbuilt = {dead.tag}, {unbuilt.cell.id}
    reports = world.night().reports
    assert [one["image"] for one in reports] == [
        recipe.spec.tag for recipe in world.recipes if recipe.spec != unbuilt
    ]
    assert [one["exit_code"] for one in reports] == [1, 0, 0]
    assert cast("Any", reports[0])["checks"][0]["measured"] == "the container died"
    world.dying, world.unbuilt = set(), set()
    assert [one["exit_code"] for one in world.night().reports] == [0, 0, 0, 0]


def test_an_image_over_its_size_budget_warns_in_both_summaries(world: World) -> None:
    world.too_large = "small/debian12-core"
    world.failing = {world.recipes[0].spec.tag}
    report = world.night()
    assert as_markdown(report).count(f"## Warning: small/debian12-core\n\n```\n{LARGE}\n```\n") == 1
    cells = json.loads(as_json(report))["cells"]
    assert [cell["warnings"] for cell in cells if cell["warnings"]] == [[LARGE]]
    assert LARGE not in str([cell["detail"] for cell in cells])


def test_a_failed_image_is_validated_again_the_next_night(world: World) -> None:
    world.failing = {world.recipes[0].spec.tag}
    world.night()
    world.up_to_date, world.failing, world.validated = True, set(), []
    report = world.night()
    assert world.validated == [world.recipes[0].spec.tag]
    assert (report.changed, report.broken) == (1, [])


def test_a_registry_that_refuses_ends_the_night_with_a_report(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise PublishError.of("the registry refused")

    monkeypatch.setattr(remote_images, "move_tag", refuse)
    report = world.night()
    assert isinstance(report.failure, PublishError)
    assert report.headline == "the night ended early: the registry refused"
    assert states(report) == {("built", "passed", "")}


def test_a_tag_that_somebody_moved_in_the_registry_is_moved_back(world: World) -> None:
    world.night()
    reference = next(iter(world.tags))
    right, world.tags[reference] = world.tags[reference], "somebody's"
    report = world.night()
    assert world.tags[reference] == right
    assert [cell.publication for cell in report.cells].count("published") == 1


@pytest.fixture
def report() -> NightReport:
    good = CellReport("m/a", "i/m:a", "built", "sha256:a", 61.4, "passed", "published", "sha256:d")
    bad = CellReport("m/b", "i/m:b", "failed", detail=("no space", "full log: x"))
    return NightReport(("m",), (good, bad))


def test_the_markdown_summary_has_a_row_a_cell_and_the_evidence(report: NightReport) -> None:
    assert as_markdown(report) == (
        "# Nightly m\n"
        "\n"
        "1 of 2 cells are broken.\n"
        "\n"
        "| cell | build | validation | publication | digest |\n"
        "| --- | --- | --- | --- | --- |\n"
        "| m/a | built (61 s) | passed | published | sha256:d |\n"
        "| m/b | failed | - | - | - |\n"
        "\n"
        "## m/b\n"
        "\n"
        "```\n"
        "no space\n"
        "full log: x\n"
        "```\n"
    )


def test_the_json_summary_says_the_same(report: NightReport) -> None:
    found = json.loads(as_json(report))
    assert (found["broken"], found["changed"], found["matrices"]) == (1, 1, ["m"])
    assert [(cell["cell"], cell["build"]) for cell in found["cells"]] == [
        ("m/a", "built"),
        ("m/b", "failed"),
    ]


def test_what_was_validated_in_this_night_is_proved_and_a_failure_too(world: World) -> None:
    bad = world.recipes[0].spec
    world.failing.add(bad.tag)
    proofs = {proof.cell: proof for proof in world.night().proofs}
    assert set(proofs) == {recipe.spec.cell.name for recipe in world.recipes}
    assert (proofs[bad.cell.name].passed, proofs[bad.cell.name].failed) == (
        False,
        ("torch.version",),
    )
    assert proofs[bad.cell.name].pins == exact_pins(bad)
    again = world.night()
    assert [proof.cell for proof in again.proofs] == [bad.cell.name]
