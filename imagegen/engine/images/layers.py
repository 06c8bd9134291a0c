"""Read the layers of an image as files, from what `docker save` would write."""

from __future__ import annotations

import json
import tarfile
import tempfile
from typing import IO, TYPE_CHECKING

from imagegen.engine.client import Engine, engine_errors
from imagegen.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterator

SAVE_SECONDS = 3600
"""`docker save` writes all layers to a disk of its own before it sends the first byte."""


def layers(engine: Engine, ref: str) -> Iterator[tuple[str, tarfile.TarFile]]:
    """Yield each layer of an image, lowest first: its path in the archive, and its files.

    It takes a temporary file of the image's size. A layer is only readable until the next one.
    """
    with tempfile.TemporaryFile() as archive:
        _save(engine, ref, archive)
        with tarfile.open(fileobj=archive) as outer:
            for path in _layer_paths(outer):
                with tarfile.open(fileobj=_member(outer, path)) as layer:
                    yield path, layer


def _save(engine: Engine, ref: str, archive: IO[bytes]) -> None:
    with engine_errors(f"save `{ref}`"), engine.fresh(timeout=SAVE_SECONDS) as api:
        for chunk in api.get_image(ref):
            archive.write(chunk)
    archive.seek(0)


def _layer_paths(outer: tarfile.TarFile) -> list[str]:
    """Read the paths of the layers from manifest.json.

    Docker's own layout and the OCI layout (Docker 25 and later) both have it.
    """
    manifest = json.load(_member(outer, "manifest.json"))
    return [str(path) for path in manifest[0]["Layers"]]


def _member(outer: tarfile.TarFile, path: str) -> IO[bytes]:
    content = outer.extractfile(path)
    if content is None:
        text = f"`{path}` is no file in the saved image"
        raise EngineError.of(text)
    return content
