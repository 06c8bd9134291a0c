"""`imagegen list`: the cells of one matrix, or of all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from imagegen.cli import options

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.console import Console
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
    specs = select([spec for family in families for spec in family.specs], cells)
    console.data([_row(spec) for spec in specs])
    console.table(
        ("matrix", "cell", "image", "components"),
        [(spec.cell.matrix, spec.cell.name, spec.tag, " ".join(_versions(spec))) for spec in specs],
    )


def _versions(spec: ImageSpec) -> list[str]:
    return [f"{pin.component}={pin.version}" for pin in spec.pins]


def _row(spec: ImageSpec) -> dict[str, object]:
    return {
        "matrix": spec.cell.matrix,
        "cell": spec.cell.name,
        "image": spec.tag,
        "os": spec.os.id,
        "axes": dict(spec.cell.values),
        "components": {pin.component: pin.version for pin in spec.pins},
        "omitted": {o.component: o.reason for o in spec.cell.omitted},
    }
