"""`imagegen publish` pushes validated images, then moves their tags."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imagegen.engine import client
from imagegen.journal.journal import open_journal
from imagegen.journal.run import journal_run
from imagegen.publisher.publish import candidate_of, check_target
from imagegen.publisher.publish import publish as push_and_move
from imagegen.workflow.project import Project, select

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from imagegen.console.console import Console
    from imagegen.model.publication import Publication


def publish(
    matrix: str, cells: Sequence[str], to: str, overlay: Path | None, console: Console
) -> list[Publication]:
    """Publish the images of cells of a matrix, all of them or none.

    Raises PublishError for an image without a passed validation, and for a registry that refuses.
    """
    project, journal = Project(overlay), open_journal()
    specs = select(project.family(matrix).specs, cells)
    check_target([spec.tag for spec in specs], to)
    engine = client.connect()
    with journal_run(journal, "publish") as run_id:
        candidates = [candidate_of(engine, spec.tag, journal) for spec in specs]
        published = push_and_move(engine, candidates, to, console.line)
        for one in published:
            journal.add_publication(run_id, one)
    return published
