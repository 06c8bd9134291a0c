"""Test the log of one cell's build, and where its steps came from."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from imagegen.builder.cell_steps import (
    LAST_LINES,
    CellSteps,
    origin_of,
)
from imagegen.engine.builds.buildkit import StepError
from imagegen.engine.builds.vertex_events import (
    VertexCached,
    VertexFailed,
    VertexFinished,
    VertexLog,
    VertexStarted,
)
from imagegen.events import events
from imagegen.model.build import StepRecord
from imagegen.model.recipe import StepOrigin
from imagegen.workflow.project import Project

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.events.events import Event
    from imagegen.model.recipe import Recipe
    from unit.conftest import Overlay

GAMMA = "dockerfiles/components/gamma/install.j2"


@pytest.fixture
def recipe(small: Overlay) -> Recipe:
    """Return a recipe in which `gamma` has two instructions, on lines 2 and 4 of its template."""
    small.template("gamma", "# compiled\nRUN one \\\n    more\nCOPY a b\n")
    project = Project()
    (found,) = project.recipes(project.family("small"), ["debian12-core"])
    return found


@pytest.fixture
def emitted() -> list[Event]:
    return []


@pytest.fixture
def log(recipe: Recipe, tmp_path: Path, emitted: list[Event]) -> CellSteps:
    return CellSteps(recipe, tmp_path / "logs/cell.log", emitted.append)


@pytest.mark.parametrize(
    ("step", "line"),
    [
        ("[gamma 1/2] RUN one more", 2),
        ("[gamma 2/2] COPY a b", 4),
        ("[gamma 2/3] RUN one more", 2),
        ("[gamma 3/3] COPY a b", 4),
        ("[gamma  3/13] x", None),
        ("[gamma 1/3] FROM docker.io/library/debian", None),
    ],
)
def test_a_step_leads_to_its_template_line_with_and_without_from_counted(
    recipe: Recipe, step: str, line: int | None
) -> None:
    found = origin_of(recipe, step)
    assert (found and found.line) == line
    assert found is None or found.template == GAMMA


def test_a_step_of_several_lines_has_its_origin_too(recipe: Recipe) -> None:
    assert origin_of(recipe, "[beta 1/1] RUN install beta\n  && more") == StepOrigin(
        "beta", 0, "beta", "dockerfiles/components/beta/install.j2", 1
    )


@pytest.mark.parametrize("step", ["", "[internal] load build definition", "[nowhere 1/1] RUN x"])
def test_what_is_no_step_of_a_component_has_no_origin(recipe: Recipe, step: str) -> None:
    assert origin_of(recipe, step) is None


def test_evidence_is_template_line_instruction_last_lines_and_log_file(
    log: CellSteps, tmp_path: Path
) -> None:
    lines = tuple(f"line {number}" for number in range(20))
    error = StepError("[gamma 1/2] RUN one more", "exit code: 2\nmore", 2, lines)
    assert log.evidence(error) == (
        f"{GAMMA}:2",
        "step: [gamma 1/2] RUN one more",
        *(f"  line {number}" for number in range(20 - LAST_LINES, 20)),
        "exit code: 2",
        f"full log: {tmp_path}/logs/cell.log",
        "this step alone: imagegen build --matrix small debian12-core --until gamma",
    )


def test_the_cell_of_a_request_has_no_name_in_the_matrix_that_it_is_saved_as(
    recipe: Recipe, tmp_path: Path
) -> None:
    lone = replace(recipe, spec=replace(recipe.spec, cell=replace(recipe.spec.cell, file="")))
    again = "imagegen request os=debian12 --save NAME && imagegen build --matrix NAME"
    log = CellSteps(lone, tmp_path / "x.log", lambda _: None, again)
    said = log.evidence(StepError("[gamma 1/2] RUN one more", "exit code: 2", 2, ()))
    assert said[-1] == f"this step alone: {again} --until gamma"


def test_the_record_has_every_step_with_its_seconds(log: CellSteps) -> None:
    alpha, beta = "[alpha 1/1] RUN a", "[beta 1/1] RUN b"
    for event in (
        VertexStarted("d0", "[internal] load"),
        VertexCached("d1", alpha),
        VertexStarted("d2", beta),
        VertexLog("d2", beta, "hello"),
        VertexFinished("d2", beta, 1.5),
        VertexStarted("d2", beta),
        VertexFinished("d2", beta, 2.0),
    ):
        log.event(event)
    rows = [("RUN /bin/sh -c base", 900), ("RUN a", 10), ("ENV A=1", 0), ("RUN b", 20)]
    rows += [("RUN one", 30), ("COPY a", 40), ("RUN d", 50), ("CMD", 0)]
    record = log.built("sha256:abc", 77, 9.0, rows)
    assert record.steps == (
        StepRecord(alpha, "alpha", 0.0, True, "alpha", "3.11", 10),
        StepRecord(beta, "beta", 3.5, False, "beta", "1.13.1", 20),
    )
    assert (record.outcome, record.image_id, record.size_bytes) == ("built", "sha256:abc", 77)
    assert record.cell_id == "small/debian12-core"


def test_every_step_is_an_event_with_its_place_in_the_cell(
    log: CellSteps, emitted: list[Event]
) -> None:
    log.event(VertexStarted("d", "[beta 1/1] RUN b"))
    log.event(VertexLog("d", "[beta 1/1] RUN b", "hello"))
    log.event(VertexFailed("d", "[beta 1/1] RUN b", "exit code: 1"))
    log.event(VertexCached("e", "[gamma 1/2] RUN one more"))
    log.event(VertexFinished("f", "[gamma 2/2] COPY a b", 1.0))
    cell, name = "small/debian12-core", "[beta 1/1] RUN b"
    assert emitted == [
        events.StepStarted(cell, name, name, events.StepAt("beta", 2, 5, last=True)),
        events.StepOutput(cell, "hello", name),
        events.StepFailed(cell, name, "exit code: 1"),
        events.StepCached(cell, "[gamma 1/2] RUN one more", events.StepAt("gamma", 3, 5)),
        events.StepEnded(cell, "[gamma 2/2] COPY a b", events.StepAt("gamma", 4, 5, last=True)),
    ]


def test_a_build_that_is_tried_again_is_told_of_and_measured_anew(
    log: CellSteps, emitted: list[Event]
) -> None:
    name = "[beta 1/1] RUN b"
    log.event(VertexFinished("d", name, 60.0))
    log.again(2, 4)
    log.event(VertexStarted("d", name))
    log.event(VertexFinished("d", name, 2.0))
    retried = events.CellRetried("small/debian12-core", 2, 4)
    assert (emitted[1], retried.text) == (retried, "network failure, attempt 2 of 4")
    assert [one.seconds for one in log.built("sha256:image", 1, 5.0).steps] == [2.0]


def test_each_export_and_the_gate_are_recorded_too(log: CellSteps) -> None:
    for digest, seconds in (("d1", 7.0), ("d2", 0.5)):
        log.event(VertexStarted(digest, "exporting to image"))
        log.event(VertexFinished(digest, "exporting to image", seconds))
    log.ran("validate --static", 2.5)
    assert log.built("sha256:image", 1, 5.0).steps == (
        StepRecord("exporting to image", "", 7.0, cached=False),
        StepRecord("exporting to image", "", 0.5, cached=False),
        StepRecord("validate --static", "", 2.5, cached=False),
    )


def test_a_step_that_the_engine_tells_of_twice_took_its_time_once(log: CellSteps) -> None:
    """The engine is asked twice by the cell that exports a shared layer; others run it then."""
    name = "[beta 1/1] RUN b"
    for _ in range(2):
        log.event(VertexStarted("d", name))
        log.event(VertexFinished("d", name, 21.3))
        log.steps_done()
    assert [one.seconds for one in log.built("sha256:image", 1, 5.0).steps] == [21.3]


@pytest.mark.parametrize(
    ("cause", "outcome"), [("disk full", "failed"), ("cancelled", "cancelled")]
)
def test_a_failure_keeps_its_cause_and_its_detail(log: CellSteps, cause: str, outcome: str) -> None:
    record = log.failed(cause, ("one", "two"), 3.0)
    assert (record.outcome, record.cause, record.detail) == (outcome, cause, ("one", "two"))


def test_a_step_that_ran_for_the_cell_is_no_hit_of_the_cache_when_the_engine_is_asked_again(
    log: CellSteps,
) -> None:
    name = "[gamma 1/2] RUN one more"
    for event in (VertexStarted("sha256:1", name), VertexFinished("sha256:1", name, 3.0)):
        log.event(event)
    log.steps_done()
    log.event(VertexCached("sha256:2", name))
    log.event(VertexCached("sha256:3", "[gamma 2/2] COPY a b"))
    record = log.built("sha256:image", 1, 5.0)
    assert [(one.name, one.seconds, one.cached) for one in record.steps] == [
        (name, 3.0, False),
        ("[gamma 2/2] COPY a b", 0.0, True),
    ]
