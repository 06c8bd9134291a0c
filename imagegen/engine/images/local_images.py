"""Find, tag and remove images that the engine has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imagegen.engine import sdk
from imagegen.engine.client import Engine, engine_errors
from imagegen.engine.images.local_image import LocalImage, inspected, listed

if TYPE_CHECKING:
    from imagegen.engine.answers import HistoryRow, ImageAnswer


def list_labelled(engine: Engine, label: str) -> tuple[LocalImage, ...]:
    """List all images with a label (`name` or `name=value`), with one call."""
    with engine_errors("list images"):
        rows = engine.api.images(filters={"label": label})
    return tuple(map(listed, rows))


def find(engine: Engine, ref: str) -> LocalImage | None:
    """Find the image of a reference or id; None where the engine does not have it."""
    with engine_errors(f"inspect `{ref}`"):
        try:
            return inspected(_inspect(engine, ref))
        except sdk.errors.ImageNotFound:
            return None


def inspect(engine: Engine, ref: str) -> ImageAnswer:
    """Return the engine's description of an image. Raises EngineError where it has none."""
    with engine_errors(f"inspect `{ref}`"):
        return _inspect(engine, ref)


def _inspect(engine: Engine, ref: str) -> ImageAnswer:
    # The SDK's stubs leave this method untyped.
    described: ImageAnswer = engine.api.inspect_image(ref)  # type: ignore[no-untyped-call]
    return described


def tag(engine: Engine, image_id: str, ref: str) -> None:
    """Make `ref` (`repository:tag`) the name of an image; another image may lose it."""
    repository, name = split_reference(ref)
    with engine_errors(f"tag {image_id} as `{ref}`"):
        engine.api.tag(image_id, repository, name, force=True)


def history(engine: Engine, ref: str) -> tuple[tuple[str, int], ...]:
    """List the instructions that made an image, the first one first, and the bytes of each."""
    with engine_errors(f"read the history of `{ref}`"):
        rows: list[HistoryRow] = engine.api.history(ref)  # type: ignore[no-untyped-call]
    return tuple((str(row["CreatedBy"]), int(row["Size"])) for row in reversed(rows))


def remove(engine: Engine, ref: str, force: bool = False) -> None:
    """Remove a reference, and with the last one the image; a missing reference is no error."""
    with engine_errors(f"remove `{ref}`"):
        try:
            engine.api.remove_image(ref, force=force)
        except sdk.errors.NotFound:
            return


def split_reference(ref: str) -> tuple[str, str]:
    """Split a reference into repository and tag; a port is not a tag."""
    repository, colon, name = ref.rpartition(":")
    if not colon or "/" in name:
        return ref, "latest"
    return repository, name
