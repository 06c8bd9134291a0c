"""What happens in a run, as records: a stage emits them, subscribers show them or write them down.

Any thread may emit; a subscriber that keeps state takes a lock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

# `stream` reads the types of the fields when it runs.
from imagegen.model.build import BuildRecord  # noqa: TC001
from imagegen.model.validation import ValidationRecord  # noqa: TC001


@dataclass(frozen=True)
class StepAt:
    """Where a cell is: the component that is being built, its step and how many there are."""

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
    """The steps that are to be made will take this long, at least."""

    left_seconds: float


@dataclass(frozen=True)
class CellStarted:
    """The build of a cell begins; `why` is what makes it stale."""

    cell: str
    why: str


@dataclass(frozen=True)
class CellWaits:
    """A cell does something that is no step of its Dockerfile: it waits, or it is judged.

    `text` says what.
    """

    cell: str
    text: str


@dataclass(frozen=True)
class StepStarted:
    """The engine runs a step. `name` is the engine's own, `text` a short one for people.

    `at` is empty for steps of no component. `layer_bytes` is the predicted size of the layer, 0 for
    unknown; `left_seconds` is what the whole run will still take, None where nobody predicts it.
    """

    cell: str
    name: str
    text: str
    at: StepAt | None = None
    layer_bytes: int = 0
    left_seconds: float | None = None


@dataclass(frozen=True)
class StepCached:
    """The engine has the result of a step already."""

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
    """A line for the log file of a cell alone."""

    cell: str
    line: str


@dataclass(frozen=True)
class ImageValidated:
    """`validate` ran in the new image of a cell, which has no tag yet."""

    cell: str
    record: ValidationRecord


@dataclass(frozen=True)
class CellEnded:
    """The build of a cell came to its end. `left_seconds` as in StepStarted."""

    record: BuildRecord
    left_seconds: float | None = None

    @property
    def cell(self) -> str:
        return self.record.cell_id

    @property
    def text(self) -> str:
        """How it ended, in a few words."""
        record, image = self.record, self.record.image_id[7:19]
        if record.outcome == "built":
            return f"built {image} in {record.seconds:.0f} s"
        if record.outcome == "up-to-date":
            return f"up to date, {image}"
        return "cancelled" if record.outcome == "cancelled" else f"failed: {record.cause}"

    @property
    def began(self) -> bool:
        """Whether the cell's turn came before the run ended."""
        return bool(self.record.log) or self.record.outcome != "cancelled"


@dataclass(frozen=True)
class StageReached:
    """A cell was built up to a component, as `--until` asks for; the image has no tag."""

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
"""Takes each event as it happens."""
