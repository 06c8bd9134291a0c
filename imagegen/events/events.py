"""Define what can happen in a run, as records.

A stage emits them; subscribers show them or write them down. Any thread may emit; a subscriber that
keeps state takes a lock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

# `stream` reads the types of the fields when it runs.
from imagegen.model.build import BuildRecord  # noqa: TC001
from imagegen.model.validation import ValidationRecord  # noqa: TC001


@dataclass(frozen=True)
class StepAt:
    """Where a cell is: the component that is built now, the number of its step, and of how many.

    When the `last` step of a component ends, its layer is made, and so are those below it.
    """

    component: str
    number: int
    of: int
    last: bool = False

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


@dataclass(frozen=True)
class CellsPlanned:
    """The run will bring these cells up to date."""

    cells: tuple[str, ...]


@dataclass(frozen=True)
class Note:
    """A line for the user beside the progress of cells, such as a warning."""

    text: str


@dataclass(frozen=True)
class PredictedLayer:
    """A layer that a run has to make, once for all cells that contain it.

    A `packed` one is exported by itself before the cells above it begin; `seconds` include that.
    """

    component: str
    seconds: float
    size_bytes: int = 0
    packed: bool = False


@dataclass(frozen=True)
class PredictedCell:
    """What a cell has to make.

    `layers` are indices into the layers of the run, the lowest first. The seconds are those of the
    cell's own export and of its gate, None where they are unknown.
    """

    cell: str
    layers: tuple[int, ...]
    export_seconds: float | None = None
    gate_seconds: float | None = None


@dataclass(frozen=True)
class Predicted:
    """The predicted time of a run; its cells are in the order in which they begin.

    The steps of `jobs` cells run side by side. `in_flight` cells are in progress at a time, among
    them those that are exported or validated. Where layers are `remade`, a cell shares the layers
    of another cell only while that one runs.
    """

    layers: tuple[PredictedLayer, ...]
    cells: tuple[PredictedCell, ...]
    jobs: int = 1
    in_flight: int = 1
    remade: bool = False


@dataclass(frozen=True)
class CellsQueued:
    """Cells whose build has not begun wait for something, such as `a free build slot`."""

    cells: tuple[str, ...]
    waits_for: str


@dataclass(frozen=True)
class CellStarted:
    """The build of a cell begins; `why` is what makes it stale."""

    cell: str
    why: str


@dataclass(frozen=True)
class CellWaits:
    """A cell waits, or does something that is no step of its Dockerfile; `text` says what."""

    cell: str
    text: str


@dataclass(frozen=True)
class CellRetried:
    """The build of a cell is retried."""

    cell: str
    attempt: int
    of: int

    @property
    def text(self) -> str:
        """Say which attempt begins."""
        return f"network failure, attempt {self.attempt} of {self.of}"


@dataclass(frozen=True)
class StepStarted:
    """The engine starts a step.

    `name` is the engine's name of it, `text` a short one for people. `at` is None for steps of no
    component, such as the export and the gate.
    """

    cell: str
    name: str
    text: str
    at: StepAt | None = None


@dataclass(frozen=True)
class StepCached:
    """The engine already has the result of a step."""

    cell: str
    name: str
    at: StepAt | None = None


@dataclass(frozen=True)
class StepEnded:
    """A step, or a piece of it, ended without a failure."""

    cell: str
    name: str
    at: StepAt | None = None


@dataclass(frozen=True)
class StepFailed:
    """A step failed, or was cancelled because another one did."""

    cell: str
    name: str
    error: str


@dataclass(frozen=True)
class StepOutput:
    """One line that a step printed; `name` is the engine's name of the step."""

    cell: str
    line: str
    name: str = ""


@dataclass(frozen=True)
class CellLogged:
    """A line that goes to the log file of a cell only."""

    cell: str
    line: str


@dataclass(frozen=True)
class ImageValidated:
    """`validate` ran in the new image of a cell, which has no tag yet."""

    cell: str
    record: ValidationRecord


@dataclass(frozen=True)
class CellEnded:
    """The build of a cell ended."""

    record: BuildRecord

    @property
    def cell(self) -> str:
        """Return the id of the cell."""
        return self.record.cell_id

    @property
    def text(self) -> str:
        """Say in a few words how the build ended."""
        record, image = self.record, self.record.image_id[7:19]
        if record.outcome == "built":
            return f"built {image} in {record.seconds:.0f} s"
        if record.outcome == "up-to-date":
            return f"up to date, {image}"
        return "cancelled" if record.outcome == "cancelled" else f"failed: {record.cause}"

    @property
    def steps(self) -> int:
        """Count the steps of components that the build had."""
        return sum(bool(step.component) for step in self.record.steps)

    @property
    def cached(self) -> int:
        """Count those of `steps` whose result the engine already had."""
        return sum(step.cached and bool(step.component) for step in self.record.steps)

    @property
    def began(self) -> bool:
        """Say whether the build of the cell began before the run ended."""
        return bool(self.record.log) or self.record.outcome != "cancelled"


@dataclass(frozen=True)
class StageReached:
    """A cell was built up to a component, as `--until` asks; the image has no tag."""

    cell: str
    component: str
    image_id: str


Event = (
    CellsPlanned
    | Note
    | Predicted
    | CellsQueued
    | CellStarted
    | CellWaits
    | CellRetried
    | StepStarted
    | StepCached
    | StepEnded
    | StepFailed
    | StepOutput
    | CellLogged
    | ImageValidated
    | CellEnded
    | StageReached
)

Sink = Callable[[Event], None]
"""A function that takes each event when it happens."""
