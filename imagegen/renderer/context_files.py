"""Collect the files of a build context, and compute the digest over them and the Dockerfile."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

from imagegen.catalog import components_json, known_bad
from imagegen.model.recipe import EXPECTATION_PATH, ContextFile
from imagegen.renderer.dockerfile import OWN_FOLDER
from imagegen.renderer.image_json import as_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from imagegen.config.payload import Payload
    from imagegen.model.catalog import Catalog
    from imagegen.renderer.image_json import Expectation

BUILD_ENV = "build-env"
"""The context folder that downloading steps mount; certificates are added at build time."""


class Shared(NamedTuple):
    """Context files that images of the same components share, with their part of the digest.

    `before` and `after` are the files before and after an image's own files, in order; `digested`
    has the bytes of both for the digest.
    """

    before: tuple[ContextFile, ...]
    after: tuple[ContextFile, ...]
    digested: tuple[bytes, bytes]


class ContextFiles:
    """Reads the files that components add to a build context, each one once."""

    def __init__(self, payload: Payload, catalog: Catalog) -> None:
        self._payload = payload
        self._catalog = catalog
        self._folders: dict[str, tuple[ContextFile, ...]] = {}
        self._shared: dict[tuple[str, ...], Shared] = {}

    def shared(self, names: tuple[str, ...]) -> Shared:
        """Read the files of these components."""
        if names not in self._shared:
            own = f"{OWN_FOLDER}/"
            files = sorted(self._files(names), key=lambda file: file.path)
            before = tuple(file for file in files if file.path < own)
            after = tuple(file for file in files if file.path >= own)
            parts = b"".join(map(digested, before)), b"".join(map(digested, after))
            self._shared[names] = Shared(before, after, parts)
        return self._shared[names]

    def _files(self, names: Sequence[str]) -> Iterator[ContextFile]:
        yield from self._folder("dockerfiles/build-env", BUILD_ENV)
        for name in names:
            yield from self._folder(f"dockerfiles/components/{name}/files", name)
            for target, tree in self._catalog.components[name].trees.items():
                yield from self._folder(tree, target, code=True)

    def _folder(self, source: str, target: str, *, code: bool = False) -> tuple[ContextFile, ...]:
        if source not in self._folders:
            tree = self._payload.context(source, code=code)
            self._folders[source] = tuple(
                ContextFile(f"{target}/{name}", self._data(f"{source}/{name}", path))
                for name, path in tree
            )
        return self._folders[source]

    def _data(self, name: str, path: Path) -> bytes:
        """Read a file; what the checks know of components is made of the catalog, overlays' too."""
        if name == components_json.FILE:
            return components_json.components_json(self._catalog)
        if name == known_bad.FILE:
            return known_bad.known_bad_json(self._catalog)
        return path.read_bytes()


def own_files(document: Expectation) -> tuple[ContextFile, ...]:
    """Make the files that belong to this image alone, sorted by path."""
    lines = [f'{name}="{value}"\n' for name, value in document["env"].items()]
    return (
        ContextFile(f"{OWN_FOLDER}/etc/environment", "".join(lines).encode()),
        ContextFile(f"{OWN_FOLDER}{EXPECTATION_PATH}", as_json(document)),
    )


def digest(dockerfile: str, files: Iterable[bytes]) -> str:
    """Compute the sha256 over the Dockerfile and the `digested` form of every context file."""
    total = hashlib.sha256(dockerfile.encode())
    for file in files:
        total.update(file)
    return f"sha256:{total.hexdigest()}"


def digested(file: ContextFile) -> bytes:
    """Write a file with its path and mode in the form that the digest takes."""
    head = f"\0{file.path}\0{file.mode:o}\0".encode()
    return head + hashlib.sha256(file.data).digest()
