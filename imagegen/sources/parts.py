"""Find the files from outside that a recipe needs: vendor parts, and the tarballs of rows.

A template mounts `artifacts/<name>/<version>` of the context, a folder with one file. So the
folders that a Dockerfile mounts are the parts that its build needs.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from imagegen.errors import RenderError
from imagegen.model.recipe import Part

if TYPE_CHECKING:
    from collections.abc import Iterator

    from imagegen.model.image import ImageSpec, Pin
    from imagegen.model.recipe import Recipe
    from imagegen.sources.artifacts import Artifacts

_MOUNT, _FOLDER = "source=artifacts/", re.compile(r"[^\s,]+")


def with_parts(recipe: Recipe, artifacts: Artifacts) -> Recipe:
    """Add to a recipe the parts that its Dockerfile mounts.

    The sha256 of a part changes the digest of the recipe. Raises RenderError where the Dockerfile
    mounts a part that no row of the image names.
    """
    behind = recipe.dockerfile.split(_MOUNT)[1:]
    mounted = {f"artifacts/{found[0]}" for found in map(_FOLDER.match, behind) if found}
    if not mounted:
        return recipe
    known = {part.folder: part for part in _parts(recipe.spec, artifacts)}
    unknown = sorted(mounted - set(known))
    if unknown:
        raise RenderError.of(
            f"`{recipe.spec.tag}` mounts `{unknown[0]}`, which no release in it names",
            evidence=[f"its releases name: {', '.join(known) or 'none'}"],
            hint="give the row `artifact`, or `tarball` with url and sha256",
        )
    parts = tuple(known[folder] for folder in sorted(mounted))
    return replace(recipe, parts=parts, digest=_digest(recipe.digest, parts))


def _parts(spec: ImageSpec, artifacts: Artifacts) -> Iterator[Part]:
    for pin in spec.pins:
        if pin.release.artifact:
            yield _vendor_part(pin, spec.os.id, artifacts)
        elif pin.release.tarball:
            tarball, row = pin.release.tarball, pin.release.where
            yield Part(pin.component, pin.version, tarball["sha256"], tarball["url"], row)


def _vendor_part(pin: Pin, os: str, artifacts: Artifacts) -> Part:
    name, row = pin.release.artifact, pin.release.where
    listed = artifacts.find(name, pin.version, os)
    if listed is None:
        return Part(name, pin.version, "", "", row, os)
    return Part(name, pin.version, listed.sha256, "", row, listed.os)


def _digest(digest: str, parts: tuple[Part, ...]) -> str:
    total = hashlib.sha256(digest.encode())
    for part in parts:
        total.update(f"\0{part.folder}\0{part.sha256}".encode())
    return f"sha256:{total.hexdigest()}"
