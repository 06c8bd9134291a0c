"""`imagegen list`: the cells of one matrix, or of all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from imagegen.cli import options

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from imagegen.console.console import Console
    from imagegen.matrix.reader import Matrix
    from imagegen.model.image import ImageSpec


@click.command("list")
@click.option("--matrix", "-m", "matrix", help="only this matrix")
@options.cells
@options.common
def command(
    matrix: str | None, cells: tuple[str, ...], console: Console, overlay: Path | None
) -> None:
    """The cells of the matrices, and the image that each one becomes."""
    listed = _chosen(overlay, matrix, cells) if matrix or cells else _all(overlay)
    for one in listed:
        one["expired"] = _expired(one)
    console.data(listed)
    owned = any(one["owner"] or one["expires"] for one in listed)
    rows = [
        (one["matrix"], one["cell"], one["image"], _versions(one["components"]))
        + ((_who(one),) if owned else ())
        for one in listed
    ]
    columns = ("matrix", "cell", "image", "components")
    console.table((*columns, "asked for by") if owned else columns, rows)


def _all(overlay: Path | None) -> list[dict[str, Any]]:
    """Every cell of every matrix: from the last run, where no file has changed since."""
    from imagegen.config.cache import remembered
    from imagegen.config.payload import open_payload

    payload = open_payload(overlay)
    files = (*payload.catalog_files(), *payload.matrix_files())
    return remembered("list", files, lambda: _chosen(overlay, None, ()))


def _chosen(overlay: Path | None, matrix: str | None, cells: Sequence[str]) -> list[dict[str, Any]]:
    from imagegen.workflow.project import Project, select

    project = Project(overlay)
    families = [project.family(matrix)] if matrix else project.families()
    about = {family.matrix.name: family.matrix for family in families}
    specs = select([spec for family in families for spec in family.specs], cells)
    return [_row(spec, about[spec.cell.matrix]) for spec in specs]


def _expired(row: Mapping[str, Any]) -> bool:
    if not row["expires"]:
        return False
    from imagegen.request.saved import expired

    return expired(row["expires"])


def _who(row: Mapping[str, Any]) -> str:
    """Who asked for a saved request, and until when it is needed."""
    said = "EXPIRED" if row["expired"] else "until"
    return " ".join(filter(None, (row["owner"], row["expires"] and f"{said} {row['expires']}")))


def _versions(components: Mapping[str, str]) -> str:
    return " ".join(f"{name}={version}" for name, version in components.items())


def _row(spec: ImageSpec, matrix: Matrix) -> dict[str, Any]:
    return {
        "matrix": spec.cell.matrix,
        "cell": spec.cell.name,
        "image": spec.tag,
        "os": spec.os.id,
        "axes": dict(spec.cell.values),
        "components": {pin.component: pin.version for pin in spec.pins},
        "omitted": {o.component: o.reason for o in spec.cell.omitted},
        "owner": matrix.owner,
        "expires": matrix.expires,
    }
