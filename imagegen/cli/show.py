"""`imagegen show CELL`: what an image consists of, where each part comes from, who asked for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from imagegen.cli import options

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.console import Console
    from imagegen.model import Release


@click.command("show")
@click.argument("cell")
@options.common
def command(cell: str, console: Console, overlay: Path | None) -> None:
    """Every component of one cell: version, origin, who led to it."""
    from imagegen.expectation import expectation
    from imagegen.family import House

    house = House(overlay)
    family, spec = house.cell(cell)
    order = family.orders[spec.os.id]
    console.data(expectation(spec, order, house.catalog))
    console.table(
        ("component", "version", "where it comes from", "asked for by"),
        [
            ("os", spec.os.id, spec.os.image, "; ".join(_askers(spec.cell.file))),
            *(
                (
                    pin.component,
                    _version(pin.release),
                    pin.release.origin,
                    "; ".join(pin.via),
                )
                for pin in sorted(spec.pins, key=lambda pin: order.index(pin.component))
            ),
        ],
        title=f"{spec.tag}  (cell {spec.cell.id}, profile {spec.cell.profile})",
    )
    for name, value in spec.given.items():
        console.line(f"{name}: {value}")
    for warning in spec.warnings:
        console.line(f"warning: {warning}")
    for omission in spec.cell.omitted:
        console.line(f"without {omission.component}: {omission.reason}")


def _askers(file: str) -> list[str]:
    return [f"{file}, axis `os`"]


def _version(release: Release) -> str:
    """With the other names that a document may call it by, and the variant."""
    more = [*release.also, release.variant]
    said = ", ".join(one for one in more if one)
    return f"{release.version} ({said})" if said else release.version
