"""Write the events of a run into the journal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imagegen.events.events import CellEnded, CellsPlanned, ImageValidated

if TYPE_CHECKING:
    from imagegen.events.events import Event
    from imagegen.journal.journal import Journal


class JournalWriter:
    """A sink: the cells of a run, the validations of their new images, and how each cell ended."""

    def __init__(self, journal: Journal, run_id: int) -> None:
        self._journal, self._run_id = journal, run_id

    def __call__(self, event: Event) -> None:
        if isinstance(event, CellsPlanned):
            self._journal.plan_cells(self._run_id, event.cells)
        elif isinstance(event, ImageValidated):
            self._journal.add_validation(self._run_id, event.record)
        elif isinstance(event, CellEnded):
            self._journal.add_build(self._run_id, event.record)
