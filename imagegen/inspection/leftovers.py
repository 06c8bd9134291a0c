"""Find what a build left in an image without need: caches, wheels, archives, build tools."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from imagegen.engine.images.contents import BUILD_TOOLS
from imagegen.text import human_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from imagegen.engine.images.contents import ImageContents
    from imagegen.engine.images.inventory import Inventory

SMALL_BYTES = 100_000
"""Smaller archives belong to packages, as data of their tests."""

HIDDEN_BYTES = 20_000_000
"""Smaller amounts come from files that each apt step writes again: 5 MB after five such steps."""

# Python's own ensurepip needs wheels, and so does Debian's python3-venv to make environments.
_KEPT = re.compile(r"/(ensurepip/_bundled|usr/share/python-wheels)/")
_KINDS = (
    ("apt's lists", re.compile(r"^/var/lib/apt/lists/")),
    ("package caches", re.compile(r"/\.cache/|^/var/cache/")),
    ("temporary files", re.compile(r"^(/tmp|/var/tmp)/")),
    ("wheels", re.compile(r"\.whl$")),
    ("packages", re.compile(r"\.deb$")),
    ("archives", re.compile(r"\.(tar(\.\w+)?|tgz|run)$")),
)
_ANY_SIZE = ("apt's lists", "package caches", "temporary files")


@dataclass(frozen=True)
class Leftover:
    """Hold files of one kind with the sum of their bytes; `examples` are the largest."""

    kind: str
    count: int
    size_bytes: int
    examples: tuple[str, ...] = ()

    def __str__(self) -> str:
        size = f", {human_bytes(self.size_bytes)}" if self.size_bytes else ""
        where = f": {', '.join(self.examples)}" if self.examples else ""
        return f"left by its build: {self.kind} ({self.count}{size}){where}"


def leftovers(found: Inventory) -> tuple[Leftover, ...]:
    """List what should not be in a finished image, the largest first."""
    rows = [*_files(found.contents), *_tools(found.contents), *_hidden(found)]
    return tuple(sorted(rows, key=lambda row: -row.size_bytes))


def _files(contents: ImageContents) -> list[Leftover]:
    by_kind: dict[str, list[tuple[int, str]]] = {}
    for path, size in contents.files.items():
        kind = next((kind for kind, pattern in _KINDS if pattern.search(path)), "")
        if kind and not _KEPT.search(path) and (size >= SMALL_BYTES or kind in _ANY_SIZE):
            by_kind.setdefault(kind, []).append((size, path))
    return [
        Leftover(
            kind,
            len(files),
            sum(size for size, _ in files),
            tuple(path for _, path in sorted(files, reverse=True)[:3]),
        )
        for kind, files in by_kind.items()
    ]


def _tools(contents: ImageContents) -> list[Leftover]:
    """Find build tools in an image that has none as a component and is no devel flavour."""
    components: Mapping[str, Any] = contents.promise.get("components", {})
    flavours = {one.get("facts", {}).get("flavour") for one in components.values()}
    promised = "devel" in flavours or not components.keys().isdisjoint(BUILD_TOOLS)
    if not components or not contents.tools or promised:
        return []
    return [Leftover("build tools", len(contents.tools), 0, contents.tools)]


def _hidden(found: Inventory) -> list[Leftover]:
    """Find the bytes in layers that a container does not see: files that later layers removed."""
    seen = found.contents.folders.get("/", 0)
    hidden = sum(layer.size_bytes for layer in found.layers) - seen
    if not seen or hidden < HIDDEN_BYTES or any(layer.size_bytes < 0 for layer in found.layers):
        return []
    return [Leftover("bytes that later layers hide", 1, hidden)]
