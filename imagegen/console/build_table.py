"""Print the results of a build, cell by cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imagegen.text import human_bytes, human_seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from imagegen.console.console import Console
    from imagegen.model.build import BuildRecord


def report(records: Sequence[BuildRecord], seconds: float, console: Console) -> None:
    """Print a row for each cell, warnings, and how many images are ready; or all as JSON."""
    console.data(
        [
            {
                "cell": record.cell_id,
                "image": record.tag,
                "outcome": record.outcome,
                "id": record.image_id,
                "seconds": round(record.seconds, 1),
                "size_bytes": record.size_bytes,
                "cause": record.cause,
                "warnings": list(record.detail) if record.outcome == "built" else [],
                "log": record.log,
            }
            for record in records
        ]
    )
    console.table(
        ("cell", "outcome", "took", "size", "image"),
        [
            (
                record.cell_id,
                record.outcome.replace("-", " "),
                human_seconds(record.seconds) if record.seconds else "-",
                human_bytes(record.size_bytes) if record.size_bytes else "-",
                record.tag,
            )
            for record in records
        ],
    )
    for record in records:
        if record.outcome == "built" and record.detail:
            console.line(
                "\n".join((f"warning: {record.cell_id}: {record.detail[0]}", *record.detail[1:]))
            )
    good = sum(record.outcome in ("built", "up-to-date") for record in records)
    console.line(f"{good} of {len(records)} images ready in {human_seconds(seconds)}")
