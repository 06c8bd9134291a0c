"""Predict how long the cells of a build take: their layers, their export, the gate."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from imagegen.events.events import Predicted, PredictedCell, PredictedLayer
from imagegen.planner.cost import walk

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence, Set

    from imagegen.planner.chain import Chain
    from imagegen.planner.cost import Step


READ_A_SECOND = 100_000_000
"""The bytes of an image that `validate --static` reads in a second, if no gate was measured."""


@dataclass(frozen=True)
class BuildPace:
    """The speed of a build: cells side by side, bytes exported in a second, seconds of the gate.

    `gate_seconds` are measured, by cell; `gated` says whether there is a gate at all. `packed` are
    the layers, by OS, that one cell exports for all. With `remade`, nothing is taken from the
    engine's cache.
    """

    jobs: int
    in_flight: int
    exported_a_second: float
    gate_seconds: Mapping[str, float] = field(default_factory=dict)
    gated: bool = True
    packed: Set[tuple[str, Chain]] = frozenset()
    remade: bool = False


def predict(
    cells: Sequence[str],
    to_make: Mapping[str, Sequence[Step]],
    whole: Mapping[str, Sequence[Step]],
    pace: BuildPace,
) -> Predicted:
    """Predict the build of these cells, which begin in this order.

    `to_make` has the layers by OS that no image has yet; `whole` has all layers of the cells.
    """
    layers: list[PredictedLayer] = []
    numbers: dict[str, list[int]] = {cell: [] for cell in cells}
    exported = dict.fromkeys(cells, 0)
    for os_id, steps in to_make.items():
        for step in walk(steps):
            for cell in step.cells:
                numbers[cell].append(len(layers))
                packed = (os_id, step.chain) in pace.packed
                exported[cell] = 0 if packed else exported[cell] + step.cost.size_bytes
            layers.append(_layer(os_id, step, to_make[os_id], pace))
    sizes = _sizes(whole)
    predicted = [
        PredictedCell(
            cell,
            tuple(numbers[cell]),
            _seconds(exported[cell], pace.exported_a_second),
            _gate(cell, sizes, pace),
        )
        for cell in cells
    ]
    return Predicted(tuple(layers), tuple(predicted), pace.jobs, pace.in_flight, pace.remade)


def _layer(os_id: str, step: Step, steps: Sequence[Step], pace: BuildPace) -> PredictedLayer:
    """Predict a layer.

    One that is in `pace.packed` is exported by itself, together with the layers below it.
    """
    cost, packed = step.cost, (os_id, step.chain) in pace.packed
    seconds = cost.seconds
    if packed:
        below = (one for one in walk(steps) if one.chain == step.chain[: len(one.chain)])
        seconds += sum(one.cost.size_bytes for one in below) / pace.exported_a_second
    return PredictedLayer(step.component, seconds, cost.size_bytes, packed)


def _sizes(whole: Mapping[str, Sequence[Step]]) -> dict[str, int]:
    """Map each cell to the predicted bytes of all its layers."""
    sizes: dict[str, int] = {}
    for steps in whole.values():
        for step in walk(steps):
            for cell in step.cells:
                sizes[cell] = sizes.get(cell, 0) + step.cost.size_bytes
    return sizes


def _seconds(size_bytes: int, a_second: float) -> float | None:
    """Return the seconds that so many bytes take; None where their number is unknown."""
    return size_bytes / a_second if size_bytes else None


def _gate(cell: str, sizes: Mapping[str, int], pace: BuildPace) -> float | None:
    if not pace.gated:
        return 0.0
    return pace.gate_seconds.get(cell) or _seconds(sizes.get(cell, 0), READ_A_SECOND)
