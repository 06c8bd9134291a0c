"""`imagegen publish`: push validated images, then move their tags."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from imagegen.cli import options

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.console.console import Console


@click.command("publish")
@options.matrix
@options.cells
@click.option("--to", required=True, metavar="REGISTRY/NAMESPACE", help="where the images go")
@options.common
def command(
    matrix: str, cells: tuple[str, ...], to: str, console: Console, overlay: Path | None
) -> None:
    """Publish the images of a matrix; refuses any whose bytes have no passed validation."""
    from imagegen.engine.client import connect
    from imagegen.journal.journal import open_journal
    from imagegen.journal.run import recorded
    from imagegen.publisher.publish import candidate_of, publish
    from imagegen.workflow.project import Project, select

    project, book = Project(overlay), open_journal()
    specs = select(project.family(matrix).specs, cells)
    engine = connect()
    with recorded(book, "publish") as run_id:
        candidates = [candidate_of(engine, spec.tag, book) for spec in specs]
        published = publish(engine, candidates, to, console.line)
        for one in published:
            book.add_publication(run_id, one)
    console.data(
        [
            {
                "image": one.reference,
                "digest": one.digest,
                "previous": one.previous,
                "id": one.image_id,
            }
            for one in published
        ]
    )
