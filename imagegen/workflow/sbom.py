"""`imagegen sbom` writes the bill of materials of an image, as SPDX or CycloneDX."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from imagegen.config.files import write_whole
from imagegen.config.state import state_folder
from imagegen.engine import client
from imagegen.inspection.sbom import FORMATS
from imagegen.inspection.sbom_files import keep_sboms
from imagegen.workflow.image_name import image_of

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.console.console import Console


def sbom(name: str, kind: str, out: Path | None, overlay: Path | None, console: Console) -> None:
    """Write the bill of materials of an image or a cell into a file, or print it."""
    engine = client.connect()
    image = image_of(engine, name, overlay)
    paths = dict(zip(FORMATS, keep_sboms(engine, image.id, state_folder()), strict=True))
    data = paths[kind].read_bytes()
    if out is None:
        console.data(orjson.loads(data))
        console.line(data.decode().rstrip("\n"))
        return
    write_whole(out, data)
    console.data({"sbom": str(out), "image": image.id, "as": kind})
    console.line(f"{out}: {kind} of image {image.id[7:19]}")
