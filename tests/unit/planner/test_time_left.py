"""Test what the cells of a build are expected to take."""

from __future__ import annotations

from imagegen.events.events import Predicted, PredictedCell, PredictedLayer
from imagegen.planner.cost import Cost, Step
from imagegen.planner.time_left import READ_A_SECOND, BuildPace, predict

BASE = (("a", "1"),)
LEFT, RIGHT = (*BASE, ("b", "1")), (*BASE, ("b", "2"))
MB = 1_000_000
PACE = BuildPace(jobs=2, in_flight=4, exported_a_second=10 * MB)


def trees() -> dict[str, tuple[Step, ...]]:
    """Return two cells that share 10 seconds and have 30 and 50 of their own."""
    above = (
        Step(LEFT, Cost(30.0, 30 * MB), ("left",), ()),
        Step(RIGHT, Cost(50.0, 0), ("right",), ()),
    )
    return {"os": (Step(BASE, Cost(10.0, 100 * MB), ("left", "right"), above),)}


def test_cells_share_layers_and_each_has_an_export_and_a_gate() -> None:
    assert predict(["right", "left"], trees(), trees(), PACE) == Predicted(
        layers=(
            PredictedLayer("a", 10.0, 100 * MB),
            PredictedLayer("b", 30.0, 30 * MB),
            PredictedLayer("b", 50.0, 0),
        ),
        cells=(
            PredictedCell("right", (0, 2), 10.0, 100 * MB / READ_A_SECOND),
            PredictedCell("left", (0, 1), 13.0, 130 * MB / READ_A_SECOND),
        ),
        jobs=2,
        in_flight=4,
    )


def gate_of(cell: str, pace: BuildPace) -> float | None:
    (predicted,) = [
        one for one in predict(["left", "right"], trees(), trees(), pace).cells if one.cell == cell
    ]
    return predicted.gate_seconds


def test_measured_gates_win_and_without_a_gate_there_is_none() -> None:
    measured = BuildPace(2, 4, 10 * MB, gate_seconds={"left": 7.0})
    assert gate_of("left", measured) == 7.0
    without = BuildPace(2, 4, 10 * MB, gate_seconds={"left": 7.0}, gated=False)
    assert gate_of("left", without) == 0.0


def test_a_layer_that_is_exported_by_itself_takes_that_along() -> None:
    pace = BuildPace(2, 4, 10 * MB, packed={("os", BASE)})
    predicted = predict(["left", "right"], trees(), trees(), pace)
    assert predicted.layers[0] == PredictedLayer("a", 20.0, 100 * MB, packed=True)
    assert [one.export_seconds for one in predicted.cells] == [3.0, None]


def test_of_an_image_without_known_sizes_export_and_gate_are_unknown() -> None:
    unsized = {"os": (Step(BASE, Cost(10.0, 0), ("one",), ()),)}
    (cell,) = predict(["one"], unsized, unsized, PACE).cells
    assert (cell.export_seconds, cell.gate_seconds) == (None, None)


def test_what_images_have_is_not_exported_but_read_by_the_gate() -> None:
    to_make = {"os": (Step(LEFT, Cost(30.0, 30 * MB), ("left",), ()),)}
    (cell,) = predict(["left"], to_make, trees(), PACE).cells
    assert (cell.layers, cell.export_seconds) == ((0,), 3.0)
    assert cell.gate_seconds == 130 * MB / READ_A_SECOND
