"""Define `imagegen list`, which shows the cells of one matrix, or of all."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import click

from imagegen.cli import options
from imagegen.config.cache import remembered
from imagegen.config.payload import open_payload

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from imagegen.console.console import Console


@click.command("list")
@click.option("--matrix", "-m", "matrix", help="only this matrix")
@options.cells
@options.common
def command(
    matrix: str | None, cells: tuple[str, ...], console: Console, overlay: Path | None
) -> None:
    """The cells of the matrices, and the image that each one becomes."""
    listed = _rows(overlay, matrix, cells) if matrix is not None or cells else _every_row(overlay)
    for one in listed:
        one["expired"] = _expired(one["expires"])
    console.data(listed)
    owned = any(one["owner"] or one["expires"] for one in listed)
    rows = [
        (one["matrix"], one["cell"], one["image"], _versions(one["components"]))
        + ((_who(one),) if owned else ())
        for one in listed
    ]
    columns = ("matrix", "cell", "image", "components")
    console.table((*columns, "asked for by") if owned else columns, rows)


def _every_row(overlay: Path | None) -> list[dict[str, Any]]:
    """List every cell of every matrix: from the last run, where no file has changed since."""
    payload = open_payload(overlay)
    files = (*payload.catalog_files(), *payload.matrix_files())
    return remembered("list", files, lambda: _rows(overlay, None, ()))


def _rows(overlay: Path | None, matrix: str | None, cells: tuple[str, ...]) -> list[dict[str, Any]]:
    from imagegen.workflow.list import list_cells

    return list_cells(overlay, matrix, cells)


def _expired(day: str) -> bool:
    """Say whether the last day of a saved request is over, in UTC."""
    return bool(day) and day < datetime.now(timezone.utc).date().isoformat()


def _who(row: Mapping[str, Any]) -> str:
    """Write who asked for a saved request, and until when it is needed."""
    word = "EXPIRED" if row["expired"] else "until"
    return " ".join(filter(None, (row["owner"], row["expires"] and f"{word} {row['expires']}")))


def _versions(components: Mapping[str, str]) -> str:
    return " ".join(f"{name}={version}" for name, version in components.items())
