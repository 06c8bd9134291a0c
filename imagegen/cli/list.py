"""`imagegen list`: the cells of one matrix, or of all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from imagegen.cli import options

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.console import Console
    from imagegen.matrix import Matrix
    from imagegen.model import ImageSpec


@click.command("list")
@click.option("--matrix", "-m", "matrix", help="only this matrix")
@options.cells
@options.common
def command(
    matrix: str | None, cells: tuple[str, ...], console: Console, overlay: Path | None
) -> None:
    """The cells of the matrices, and the image that each one becomes."""
    from imagegen.family import House, select

    house = House(overlay)
    families = [house.family(matrix)] if matrix else house.families()
    about = {family.matrix.name: family.matrix for family in families}
    specs = select([spec for family in families for spec in family.specs], cells)
    console.data([_row(spec, about[spec.cell.matrix]) for spec in specs])
    owned = any(one.owner or one.expires for one in about.values())
    rows = [
        (spec.cell.matrix, spec.cell.name, spec.tag, " ".join(_versions(spec)))
        + ((_who(about[spec.cell.matrix]),) if owned else ())
        for spec in specs
    ]
    columns = ("matrix", "cell", "image", "components")
    console.table((*columns, "asked for by") if owned else columns, rows)


def _who(matrix: Matrix) -> str:
    """Who asked for a saved request, and until when it is needed."""
    from imagegen.request_file import expired

    said = "EXPIRED" if expired(matrix.expires) else "until"
    return " ".join(filter(None, (matrix.owner, matrix.expires and f"{said} {matrix.expires}")))


def _versions(spec: ImageSpec) -> list[str]:
    return [f"{pin.component}={pin.version}" for pin in spec.pins]


def _row(spec: ImageSpec, matrix: Matrix) -> dict[str, object]:
    from imagegen.request_file import expired

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
        "expired": expired(matrix.expires),
    }
