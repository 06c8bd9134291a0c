"""Write the events of a run into the journal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imagegen.events.events import CellEnded, CellsPlanned, ImageValidated

if TYPE_CHECKING:
    from imagegen.events.events import Event
    from imagegen.journal.journal import Journal


class JournalWriter:
    """Receive events, and write the cells of a run, its validations and how each cell ended."""

    def __init__(self, journal: Journal, run_id: int) -> None:
        self._journal, self._run_id = journal, run_id

    def __call__(self, event: Event) -> None:
        """Write an event into the journal, if it is one of those."""
        if isinstance(event, CellsPlanned):
            self._journal.plan_cells(self._run_id, event.cells)
        elif isinstance(event, ImageValidated):
            self._journal.add_validation(self._run_id, event.record)
        elif isinstance(event, CellEnded):
            self._journal.add_build(self._run_id, event.record)
