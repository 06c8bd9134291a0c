"""Read the files of a project that pip lists: addresses, sha256, and which one pip installed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING
from urllib.parse import unquote

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from imagegen.sources.wheels import (
    FILE,
    WheelTarget,
    file_fits,
    taken_apart,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from imagegen.engine.images.contents import Package

_SHA256 = re.compile(r"(?:^|&)sha256=([0-9a-f]{64})")


@dataclass(frozen=True)
class IndexFile:
    """One file of an index; `sha256` is empty where the index does not give it."""

    name: str
    url: str
    sha256: str
    requires_python: str


def listed_files(project: str, lines: Iterable[str]) -> list[IndexFile]:
    """List every file of the project that `pip index versions -vv` prints, in its order, once."""
    found: dict[tuple[str, str], IndexFile] = {}
    for match in filter(None, map(FILE.search, lines)):
        sums = _SHA256.search(match["sums"] or "")
        name = unquote(match["file"])
        if project_of(name) != canonicalize_name(project):
            continue  # pip lists every file of a folder of wheels
        file = IndexFile(name, match["url"], sums[1] if sums else "", match["requires"] or "")
        found.setdefault((name, file.sha256), file)
    return [*found.values()]


def file_of(dist: Package, files: Sequence[IndexFile], target: WheelTarget) -> IndexFile | None:
    """Find the file that an installed distribution came from.

    That is the wheel with exactly its tags, else a wheel for the target (some are renamed after
    they are made), else the source archive.
    """
    of_version = [file for file in files if _same(taken_apart(file.name)[0], dist.version)]
    wheels = [file for file in of_version if file.name.endswith(".whl")]
    tags = {*dist.tags}
    exactly = [file for file in wheels if {str(t) for t in taken_apart(file.name)[1]} == tags]
    own = {tag.split("-")[0] for tag in tags}
    fits = [file for file in wheels if file_fits(file.name, file.requires_python, target)]
    fitting = [file for file in fits if _any_of(file, own)]
    sources = [file for file in of_version if not file.name.endswith(".whl")]
    return next(iter([*exactly, *fitting, *sources]), None)


def _any_of(file: IndexFile, interpreters: set[str]) -> bool:
    return any(tag.interpreter in interpreters for tag in taken_apart(file.name)[1])


def _same(version: str, wanted: str) -> bool:
    try:
        return bool(version) and Version(version) == Version(wanted)
    except InvalidVersion:
        return False


def project_of(file: str) -> str:
    """Return the name of the project that a file belongs to, as indexes write it."""
    return canonicalize_name(re.split(r"-(?=\d)", file, maxsplit=1)[0])


def links_page(files: Iterable[IndexFile]) -> str:
    """Write a page for pip's `--find-links` that lists these files and no others.

    pip refuses a file that has another sha256.
    """
    rows = [
        f'<a href="{escape(file.url)}#sha256={file.sha256}">{escape(file.name)}</a>'
        for file in sorted(files, key=lambda file: file.name)
    ]
    return "\n".join(["<!DOCTYPE html>", *rows, ""])
