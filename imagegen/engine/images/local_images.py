"""Images that the engine has: find, tag, remove, and open every layer."""

from __future__ import annotations

import json
import tarfile
import tempfile
from typing import IO, TYPE_CHECKING

from imagegen.engine import sdk
from imagegen.engine.client import Engine, engine_errors
from imagegen.engine.images.local_image import LocalImage, inspected, listed
from imagegen.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from imagegen.engine.answers import HistoryRow, ImageAnswer

SAVE_SECONDS = 3600
"""`docker save` writes all layers to a disk of its own before the first byte comes."""


def list_labelled(engine: Engine, label: str) -> tuple[LocalImage, ...]:
    """All images with a label (`name` or `name=value`), from one call."""
    with engine_errors("list images"):
        rows = engine.api.images(filters={"label": label})
    return tuple(map(listed, rows))


def find(engine: Engine, ref: str) -> LocalImage | None:
    """The image of a reference or id, if the engine has it."""
    with engine_errors(f"inspect `{ref}`"):
        try:
            return inspected(_inspect(engine, ref))
        except sdk.errors.ImageNotFound:
            return None


def inspect(engine: Engine, ref: str) -> ImageAnswer:
    """The engine's own description of an image. Raises EngineError where it has none."""
    with engine_errors(f"inspect `{ref}`"):
        return _inspect(engine, ref)


def _inspect(engine: Engine, ref: str) -> ImageAnswer:
    # The SDK's stubs leave this method untyped.
    described: ImageAnswer = engine.api.inspect_image(ref)  # type: ignore[no-untyped-call]
    return described


def tag(engine: Engine, image_id: str, ref: str) -> None:
    """Make `ref` (`repository:tag`) name the image, whatever it named before."""
    repository, name = split_reference(ref)
    with engine_errors(f"tag {image_id} as `{ref}`"):
        engine.api.tag(image_id, repository, name, force=True)


def history(engine: Engine, ref: str) -> tuple[tuple[str, int], ...]:
    """The instructions that made an image, the first one first, with the bytes that each added."""
    with engine_errors(f"read the history of `{ref}`"):
        rows: list[HistoryRow] = engine.api.history(ref)  # type: ignore[no-untyped-call]
    return tuple((str(row["CreatedBy"]), int(row["Size"])) for row in reversed(rows))


def remove(engine: Engine, ref: str, force: bool = False) -> None:
    """Remove a reference, and the image with its last one. Nothing there is no error."""
    with engine_errors(f"remove `{ref}`"):
        try:
            engine.api.remove_image(ref, force=force)
        except sdk.errors.NotFound:
            return


def split_reference(ref: str) -> tuple[str, str]:
    """Repository and tag of a reference; a port is no tag."""
    repository, colon, name = ref.rpartition(":")
    if not colon or "/" in name:
        return ref, "latest"
    return repository, name


def layers(engine: Engine, ref: str) -> Iterator[tuple[str, tarfile.TarFile]]:
    """Each layer of an image, lowest first: its path in the archive, and its files.

    Costs a temporary file of the image's size. A layer is only readable until the next one.
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
    """From manifest.json, which Docker's own layout and the OCI layout (25 and later) both have."""
    manifest = json.load(_member(outer, "manifest.json"))
    return [str(path) for path in manifest[0]["Layers"]]


def _member(outer: tarfile.TarFile, path: str) -> IO[bytes]:
    content = outer.extractfile(path)
    if content is None:
        text = f"`{path}` is no file in the saved image"
        raise EngineError.of(text)
    return content
