"""Test how far a run is and what it still takes, from its events and a clock."""

from __future__ import annotations

import pytest

from imagegen.events.events import (
    CellEnded,
    CellRetried,
    CellStarted,
    Event,
    Predicted,
    PredictedCell,
    PredictedLayer,
    StepAt,
    StepCached,
    StepEnded,
    StepFailed,
    StepStarted,
)
from imagegen.events.progress import LATE_SECONDS, LATE_SHARE, RunProgress, TimeLeft
from imagegen.model.build import EXPORT_STEP, GATE_STEP, BuildRecord

SMALL, LARGE = (
    PredictedLayer("top", 30.0, 3),
    PredictedLayer("top", 50.0, 5),
)


class Run:
    """Hold a run of two cells that share 10 seconds and have 30 and 50 of their own."""

    def __init__(
        self,
        jobs: int = 1,
        ends: tuple[float | None, float | None] = (0.0, 0.0),
        *,
        remade: bool = False,
        packed: bool = False,
    ) -> None:
        self.now = 100.0
        base = PredictedLayer("base", 10.0, 1, packed)
        cells = (PredictedCell("left", (0, 1), *ends), PredictedCell("right", (0, 2), *ends))
        self.progress = RunProgress(lambda: self.now)
        self.emit(Predicted((base, SMALL, LARGE), cells, jobs, 2 * jobs, remade))

    def emit(self, *events: Event) -> None:
        for event in events:
            self.progress(event)

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def make(self, cell: str, *components: str, seconds: float = 0.0) -> None:
        """Make steps of these components, one after the other."""
        for component in components:
            self.emit(step(cell, component))
            self.wait(seconds)
            self.emit(StepEnded(cell, component, AT[component]))

    @property
    def left(self) -> float:
        found = self.progress.left()
        assert found is not None
        return found.seconds

    @property
    def late(self) -> tuple[str, ...]:
        found = self.progress.left()
        assert found is not None
        return found.late


AT = {"base": StepAt("base", 1, 2, last=True), "top": StepAt("top", 2, 2, last=True)}


def step(cell: str, component: str) -> StepStarted:
    return StepStarted(cell, component, component, AT[component])


def started(cell: str) -> CellStarted:
    return CellStarted(cell, "it is new")


def ended(cell: str, outcome: str = "built") -> CellEnded:
    record = BuildRecord(cell, "t", "r", "built" if outcome == "built" else "failed")
    return CellEnded(record)


def test_before_the_first_cell_begins_nobody_knows() -> None:
    run = Run()
    assert run.progress.left() is None
    assert run.progress.share("nobody") is None
    run.emit(started("left"))
    assert run.progress.left() == TimeLeft(90.0)


def test_cells_side_by_side_or_one_after_the_other() -> None:
    for jobs, seconds in ((1, 90.0), (2, 60.0)):
        run = Run(jobs)
        run.emit(started("left"))
        assert run.left == seconds


def test_what_one_cell_has_made_is_there_for_all() -> None:
    run = Run()
    run.emit(started("left"))
    run.make("left", "base", seconds=10.0)
    assert run.left == 80.0
    run.emit(step("left", "top"))
    run.wait(20)
    assert (run.left, run.progress.share("left")) == (60.0, 0.75)
    run.emit(StepEnded("left", "top", AT["top"]), ended("left"))
    assert run.left == 50.0
    run.emit(started("right"), StepCached("right", "base", AT["base"]))
    assert run.left == 50.0
    run.make("right", "top", seconds=50.0)
    run.emit(ended("right"))
    assert run.progress.left() == TimeLeft(0.0)


def test_a_step_of_a_stage_beside_the_chain_says_nothing_of_the_layers_below() -> None:
    """A build stage of the last component runs first: this showed `8.7s left` for minutes."""
    run = Run()
    aside = StepAt("top", 1, 2)
    run.emit(started("left"), StepStarted("left", "aside", "aside", aside))
    assert run.left == 90.0
    run.wait(2)
    run.emit(StepEnded("left", "aside", aside), step("left", "base"))
    assert run.left == 88.0
    run.wait(5)
    assert run.left == 83.0


def test_with_force_layers_are_made_again_once_those_of_others_do_not_run_any_more() -> None:
    run = Run(remade=True)
    run.emit(started("left"))
    assert run.left == 100.0
    run.make("left", "base", "top", seconds=10.0)
    run.emit(ended("left"))
    assert run.left == 60.0
    run.emit(started("right"), step("right", "base"))
    run.wait(4)
    assert run.left == 56.0


def test_with_force_cells_share_what_is_made_while_both_run() -> None:
    run = Run(jobs=2, remade=True)
    run.emit(started("left"), started("right"), step("left", "base"), step("right", "base"))
    run.wait(4)
    assert run.left == 56.0
    long_export = Run(jobs=1, ends=(20.0, 0.0), remade=True)
    long_export.emit(started("left"))
    assert long_export.left == 40.0 + 50.0 + 20.0


def test_the_figure_does_not_stand_at_a_small_number_while_a_step_is_late() -> None:
    run = Run()
    run.emit(started("left"), step("left", "base"))
    run.wait(10.0 * LATE_SHARE + LATE_SECONDS)
    assert (run.left, run.late) == (80.0, ())
    run.wait(0.1)
    assert (run.left, run.late) == (80.0, ("base",))
    assert run.progress.late("left")
    assert not run.progress.late("right")
    run.emit(StepEnded("left", "base", AT["base"]))
    assert run.late == ()


def test_export_and_gate_belong_to_it() -> None:
    run = Run(ends=(8.0, 4.0))
    run.emit(started("left"))
    assert run.left == 90.0 + 8.0 + 4.0
    run.make("left", "base", "top")
    run.emit(StepStarted("left", EXPORT_STEP, "x"))
    run.wait(6)
    assert run.left == 50.0 + 8.0 + 4.0
    assert run.progress.share("left") == pytest.approx(46 / 52)
    run.emit(StepEnded("left", EXPORT_STEP), StepStarted("left", GATE_STEP, "x"))
    run.wait(1)
    run.emit(started("right"), StepCached("right", "base", AT["base"]))
    run.make("right", "top")
    run.emit(StepStarted("right", EXPORT_STEP, "x"))
    assert run.left == 8.0 + 4.0
    run.wait(2)
    assert run.left == 6.0 + 4.0
    run.wait(20)
    assert run.late == (GATE_STEP, "the export")


def test_an_export_that_nobody_can_predict_counts_as_nothing_and_is_never_late() -> None:
    run = Run(ends=(None, None))
    run.emit(started("left"))
    run.make("left", "base", "top")
    run.emit(StepStarted("left", EXPORT_STEP, "x"))
    run.wait(100)
    assert (run.left, run.late) == (50.0, ())


def test_a_shared_layer_is_there_when_it_is_exported_by_itself() -> None:
    run = Run(packed=True)
    run.emit(started("left"))
    run.make("left", "base", seconds=4.0)
    assert run.left == 86.0
    run.emit(StepStarted("left", EXPORT_STEP, "x"))
    run.wait(5)
    assert run.left == 81.0
    run.emit(StepEnded("left", EXPORT_STEP))
    assert run.left == 80.0
    run.make("left", "top")
    run.emit(StepStarted("left", EXPORT_STEP, "x"), StepEnded("left", EXPORT_STEP))
    run.emit(started("right"))
    assert run.left == 50.0


def test_a_step_in_pieces_is_done_after_the_last() -> None:
    run = Run()
    run.emit(started("left"))
    run.make("left", "base")
    run.emit(step("left", "base"))
    run.wait(3)
    assert run.left == 87.0


@pytest.mark.parametrize(("remade", "left"), [(False, 80.0), (True, 100.0)])
def test_a_build_that_is_tried_again_finds_its_layers_but_with_force(
    remade: bool, left: float
) -> None:
    run = Run(remade=remade)
    run.emit(started("left"))
    run.make("left", "base", seconds=10.0)
    run.emit(step("left", "top"))
    run.wait(9)
    run.emit(StepFailed("left", "top", "no route"), CellRetried("left", 2, 4))
    assert run.left == left


def test_a_failed_cell_owes_what_others_need_and_nothing_else() -> None:
    run = Run()
    run.emit(started("left"), ended("left", "failed"))
    assert run.left == 60.0


def test_a_component_that_was_not_predicted_is_late_at_once() -> None:
    run = Run()
    other = StepAt("other", 1, 3)
    run.emit(started("left"), StepStarted("left", "other", "other", other))
    run.wait(LATE_SECONDS + 0.1)
    assert (run.left, run.late) == (90.0, ("other",))


def test_what_was_not_planned_changes_nothing() -> None:
    run = Run()
    run.emit(started("left"))
    run.make("nobody", "base")
    run.emit(ended("nobody"), StepFailed("nobody", "x", "y"))
    assert run.left == 90.0
    assert run.progress.layer_bytes("left", "top") == 3
    assert run.progress.layer_bytes("left", "other") == run.progress.layer_bytes("no", "top") == 0


def test_cells_in_flight_are_limited_too() -> None:
    """Four cells with nothing but a gate: two at a time."""
    progress = RunProgress(lambda: 0.0)
    cells = tuple(PredictedCell(name, (), 0.0, 10.0) for name in "abcd")
    progress(Predicted((), cells, 1, 2))
    progress(started("a"))
    assert progress.left() == TimeLeft(20.0)
