"""Test what a build predicts before it begins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from imagegen.builder.plan import BuildPlan
from imagegen.builder.shared_export import PACKED_A_SECOND
from imagegen.builder.up_to_date import Staleness
from imagegen.config.network import BuildEnv
from imagegen.engine.client import EngineMachine
from imagegen.events.events import Event, Predicted
from imagegen.journal.journal import Journal, open_journal
from imagegen.model.build import EXPORT_STEP, BuildOptions, BuildRecord, StepRecord
from imagegen.sources.artifacts import Artifacts
from imagegen.sources.supply import Store
from imagegen.workflow import build as page
from imagegen.workflow.project import Project

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.model.recipe import Recipe
    from unit.conftest import Overlay

MACHINE = EngineMachine(4, 16 << 30, "/var/lib", None)


@pytest.fixture
def project(small: Overlay) -> Project:
    path = "dockerfiles/components/beta/component.yaml"
    text = (small.root / path).read_text()
    small.write(path, text.replace('megabytes: "0"', 'megabytes: "1000"'))
    small.write("dockerfiles/build-env/env.sh", "true\n")
    return Project()


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return open_journal(tmp_path / "journal.db")


@pytest.fixture
def recipes(project: Project) -> list[Recipe]:
    return project.recipes(project.family("small"), ("debian12-*",))


def forecast(
    project: Project, journal: Journal, found: list[Staleness], tmp_path: Path, **options: Any
) -> tuple[BuildPlan, Predicted | None]:
    store = Store(Artifacts(), {}, tmp_path / "parts")
    plan = BuildPlan(tuple(found), 2, store, BuildEnv(), tmp_path, tmp_path)
    told: list[Event] = []
    asked = BuildOptions(check_disk=False, **options)
    plan = page._forecast(plan, project, journal, MACHINE, asked, told.append)
    return plan, next((one for one in told if isinstance(one, Predicted)), None)


def test_what_images_have_is_not_made_again(
    project: Project, journal: Journal, recipes: list[Recipe], tmp_path: Path
) -> None:
    stale, there = recipes
    found = [Staleness(stale, "it is new", None), Staleness(there, "", None)]
    plan, predicted = forecast(project, journal, found, tmp_path)
    assert predicted is not None
    assert [layer.component for layer in predicted.layers] == ["delta"]
    assert (predicted.jobs, predicted.in_flight, predicted.remade) == (2, 4, False)
    assert plan.shared == ()


def test_all_up_to_date_predicts_nothing(
    project: Project, journal: Journal, recipes: list[Recipe], tmp_path: Path
) -> None:
    found = [Staleness(recipe, "", None) for recipe in recipes]
    assert forecast(project, journal, found, tmp_path)[1] is None


def test_a_large_layer_of_all_is_exported_by_itself_but_with_force(
    project: Project, journal: Journal, recipes: list[Recipe], tmp_path: Path
) -> None:
    found = [Staleness(recipe, "it is new", None) for recipe in recipes]
    plan, predicted = forecast(project, journal, found, tmp_path)
    assert predicted is not None
    beta = next(layer for layer in predicted.layers if layer.component == "beta")
    assert (beta.packed, beta.seconds) == (True, 75 + 1e9 / PACKED_A_SECOND)
    assert {cell.export_seconds for cell in predicted.cells} == {None}
    assert [layer.component for layer in plan.shared][-1:] == ["gamma"]

    forced, again = forecast(project, journal, found, tmp_path, force=True)
    assert again is not None
    assert [layer.component for layer in again.layers] == [
        layer.component for layer in predicted.layers
    ]
    assert (again.remade, [layer.packed for layer in again.layers]) == (True, [False] * 4)
    assert {cell.export_seconds for cell in again.cells} == {1e9 / PACKED_A_SECOND}
    assert forced.shared == ()


def test_exports_are_as_fast_as_the_journal_has_measured(
    project: Project, journal: Journal, recipes: list[Recipe], tmp_path: Path
) -> None:
    steps = (
        StepRecord("[beta 1/1] RUN x", "beta", 30.0, False, "beta", "1.13.1", 500_000_000),
        StepRecord(EXPORT_STEP, "", 20.0, cached=False),
    )
    run = journal.start_run("build", [])
    journal.add_build(run, BuildRecord("small/x", "t", "r", "built", "sha256:1", steps=steps))
    found = [Staleness(recipe, "it is new", None) for recipe in recipes]
    _, predicted = forecast(project, journal, found, tmp_path, force=True, gate=False)
    assert predicted is not None
    assert {cell.export_seconds for cell in predicted.cells} == {20.0}
    assert {cell.gate_seconds for cell in predicted.cells} == {0.0}
