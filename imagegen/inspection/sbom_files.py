"""Keep SBOMs in the state folder, in each format, for every image that a build tagged.

Their file names have the image's id, which the record of the build has too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from imagegen.config.files import write_whole
from imagegen.engine.images.inventory import inventory
from imagegen.errors import ConfigError
from imagegen.inspection.sbom import FORMATS, document

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.engine.client import Engine
    from imagegen.engine.images.inventory import Inventory

FOLDER = "sbom"
_SUFFIX = {"spdx": "spdx.json", "cyclonedx": "cdx.json"}
"""File names as the formats recommend."""


def sbom_path(state: Path, image_id: str, kind: str) -> Path:
    """Return the path of an image's SBOM, whether or not the file exists."""
    return state / FOLDER / f"{image_id.partition(':')[2] or image_id}.{_SUFFIX[kind]}"


def kept_sboms(image_id: str, state: Path) -> tuple[Path, ...]:
    """List the files of an image's SBOMs that exist."""
    paths = (sbom_path(state, image_id, kind) for kind in FORMATS)
    return tuple(path for path in paths if path.exists())


def billed_images(state: Path) -> tuple[str, ...]:
    """List the ids of the images that have an SBOM."""
    names = (path.name for path in (state / FOLDER).glob("[!.]*"))
    ids = (
        name.removesuffix(f".{suffix}")
        for name in names
        for suffix in _SUFFIX.values()
        if name.endswith(f".{suffix}")
    )
    return tuple(dict.fromkeys(f"sha256:{one}" for one in ids))


def remove_sboms(image_id: str, state: Path) -> None:
    """Remove the SBOMs of an image. Raises ConfigError where one cannot be removed."""
    for path in kept_sboms(image_id, state):
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise ConfigError.of(f"cannot remove `{path}`", evidence=[str(error)]) from error


def keep_sboms(engine: Engine, image_id: str, state: Path) -> tuple[Path, ...]:
    """Write the SBOMs of an image, if they do not exist; return their paths.

    The paths are in the order of `FORMATS`. Raises EngineError where the image cannot be read, and
    ConfigError where a file cannot be written.
    """
    paths = tuple(sbom_path(state, image_id, kind) for kind in FORMATS)
    if all(path.exists() for path in paths):
        return paths
    return write_sboms(inventory(engine, image_id, sizes=False), state)


def write_sboms(found: Inventory, state: Path) -> tuple[Path, ...]:
    """Write the SBOMs of an image that was read; return their paths. Raises ConfigError."""
    paths = tuple(sbom_path(state, found.id, kind) for kind in FORMATS)
    for kind, path in zip(FORMATS, paths, strict=True):
        write_whole(path, document(found, kind))
    return paths
