"""`imagegen plan`: the order of layers, and what is stale and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from imagegen.cli import options

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.console import Console


@click.command("plan")
@options.matrix
@options.cells
@options.common
def command(matrix: str, cells: tuple[str, ...], console: Console, overlay: Path | None) -> None:
    """What `build` would do, without doing it."""
    from imagegen.engine.client import connect
    from imagegen.family import House
    from imagegen.staleness import find_stale

    house = House(overlay)
    family = house.family(matrix)
    found = find_stale(connect(), house.recipes(family, cells), force=False)
    console.data(
        {
            "orders": {os_id: list(order) for os_id, order in family.orders.items()},
            "cells": [
                {"cell": item.recipe.spec.cell.name, "stale": bool(item.why), "why": item.why}
                for item in found
            ],
        }
    )
    for os_id, order in family.orders.items():
        console.line(f"layers on {os_id}: {' > '.join(order)}")
    console.table(
        ("cell", "state", "why"),
        [
            (item.recipe.spec.cell.name, "stale" if item.why else "up to date", item.why)
            for item in found
        ],
    )
