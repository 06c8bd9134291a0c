"""Decide which files of a Python project fit an image, from what pip prints about all of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import unquote

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.tags import compatible_tags, cpython_tags
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version

from imagegen.engine.builds.causes import cause_of
from imagegen.engine.host.probe import Probe, without_secrets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from packaging.tags import Tag

FILE = re.compile(
    r"(?P<url>(?:https?|file)://\S*/(?P<file>[^/\s#]+\.(?:whl|tar\.gz|zip)))(?:#(?P<sums>\S*))?"
    r"(?: \(from [^)]*\))?(?: \(requires-python:(?P<requires>.*?)\))?(?:, version: \S+)?$"
)
"""A file in the output of pip, whether pip would take it for this host's Python or not."""

_FAILED = re.compile(r"Could not fetch URL (\S+): ([^:]+)")

_LEGACY = ((17, "manylinux2014"), (12, "manylinux2010"), (5, "manylinux1"))
"""The minor version of glibc with the older name of that manylinux. Source: PEP 600."""


@dataclass(frozen=True)
class WheelTarget:
    """What a file has to run on: CPython (`3.11.2`) and glibc (`2.36`) of an x86_64 image.

    `compiled` says that a source archive is accepted too.
    """

    python: str
    glibc: str
    compiled: bool = False


def judge_wheel(wanted: str, target: WheelTarget, lines: Sequence[str]) -> Probe:
    """Say whether one of the files that pip lists has the version `wanted` and fits the target."""
    files = [(unquote(m["file"]), m["requires"] or "") for m in map(FILE.search, lines) if m]
    versions = {file: taken_apart(file)[0] for file, _ in files}
    exactly = SpecifierSet(f"=={wanted}")
    of_version = [(f, r) for f, r in files if versions[f] and exactly.contains(versions[f], True)]
    fitting = [file for file, requires in of_version if file_fits(file, requires, target)]
    if fitting:
        return Probe("ok", max(fitting, key=lambda file: file.endswith(".whl")))
    trouble = cause_of("", lines)
    if trouble in ("network", "certificate"):
        failed = next((m for m in map(_FAILED.search, lines) if m), None)
        where = f" ({without_secrets(failed[1])}: {failed[2]})" if failed else ""
        return Probe("unknown", f"{trouble}: an index did not answer{where}")
    if of_version and not any(file.endswith(".whl") for file, _ in of_version):
        return Probe("unknown", f"{of_version[0][0]}: no wheel, so pip has to compile it")
    if of_version:
        return Probe("missing", f"no file for Python {target.python} and glibc {target.glibc}")
    known = sorted({Version(version) for version in versions.values() if version}, reverse=True)
    newest = ", ".join(str(version) for version in known[:4])
    return Probe("missing", f"the indexes have {newest}, …" if known else "no index has it")


def taken_apart(file: str) -> tuple[str, frozenset[Tag]]:
    """Split a file name into version and tags.

    A source archive has no tags; a file that is neither has no version.
    """
    try:
        if file.endswith(".whl"):
            _, version, _, tags = parse_wheel_filename(file)
            return str(version), tags
        return str(parse_sdist_filename(file)[1]), frozenset()
    except (InvalidWheelFilename, InvalidSdistFilename):
        return "", frozenset()


def file_fits(file: str, requires: str, target: WheelTarget) -> bool:
    """Say whether a file runs on the target."""
    _, tags = taken_apart(file)
    runs = not tags.isdisjoint(_supported(target)) if tags else target.compiled
    try:
        return runs and SpecifierSet(requires).contains(target.python, True)
    except InvalidSpecifier:
        return runs  # pip ignores a requirement that it cannot read


@cache
def _supported(target: WheelTarget) -> frozenset[Tag]:
    major, minor = (int(part) for part in target.python.split(".")[:2])
    glibc = int(target.glibc.partition(".")[2])
    platforms = [f"manylinux_2_{n}_x86_64" for n in range(glibc, 4, -1)]
    platforms += [f"{name}_x86_64" for least, name in _LEGACY if glibc >= least]
    platforms.append("linux_x86_64")
    version, interpreter = (major, minor), f"cp{major}{minor}"
    own = cpython_tags(version, platforms=platforms)
    return frozenset([*own, *compatible_tags(version, interpreter, platforms)])
