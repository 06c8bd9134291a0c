"""`imagegen diff` shows what differs between two images, and where the bytes are."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import TYPE_CHECKING

from imagegen.engine import client
from imagegen.engine.images.inventory import inventory
from imagegen.inspection.diff import difference
from imagegen.inspection.diff_tables import show
from imagegen.workflow.image_name import image_of

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.console.console import Console


def diff(
    before: str, after: str, overlay: Path | None, console: Console, most_rows: int | None
) -> None:
    """Show what differs between two images; each is named as an image or as a cell."""
    engine = client.connect()
    images = [image_of(engine, name, overlay) for name in (before, after)]
    if images[0].id == images[1].id:
        console.data({"same": True, "id": images[0].id})
        console.line(f"nothing differs: both are image {images[0].id[7:19]}")
        return
    names = [image.tags[0] if image.tags else image.id for image in images]
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(inventory, [engine, engine], names)
    made = difference(first, second)
    console.data({"same": made.same, **asdict(made)})
    show(made, console, most_rows)
