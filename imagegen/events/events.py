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
    """Where a cell is: the component that is built now, the number of its step, and of how many."""

    component: str
    number: int
    of: int

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
class Predicted:
    """The steps that have to be made will take at least this long."""

    left_seconds: float


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
class StepStarted:
    """The engine starts a step.

    `name` is the engine's name of it, `text` a short one for people. `at` is None for steps of no
    component. `layer_bytes` is the predicted size of the layer, 0 where unknown. `left_seconds` is
    the time that the whole run still needs, None where it is not predicted.
    """

    cell: str
    name: str
    text: str
    at: StepAt | None = None
    layer_bytes: int = 0
    left_seconds: float | None = None


@dataclass(frozen=True)
class StepCached:
    """The engine already has the result of a step."""

    cell: str
    name: str


@dataclass(frozen=True)
class StepFailed:
    """A step failed, or was cancelled because another one did."""

    cell: str
    name: str
    error: str


@dataclass(frozen=True)
class StepOutput:
    """One line that a step printed."""

    cell: str
    line: str


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
    """The build of a cell ended; `left_seconds` is as in StepStarted."""

    record: BuildRecord
    left_seconds: float | None = None

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
    | CellStarted
    | CellWaits
    | StepStarted
    | StepCached
    | StepFailed
    | StepOutput
    | CellLogged
    | ImageValidated
    | CellEnded
    | StageReached
)

Sink = Callable[[Event], None]
"""A function that takes each event when it happens."""
