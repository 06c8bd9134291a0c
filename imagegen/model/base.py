"""What an image stands on: its OS as a base image brings it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from imagegen.model.catalog import OsRelease
    from imagegen.model.image import ImageSpec


def base_of(spec: ImageSpec) -> OsRelease:
    """The OS, or the OS with a toolkit in it, where a row is had as a base image.

    Such a base has an id of its own and comes from a registry only; the tag is release-flavour-OS.
    Source: NVIDIA container-images/cuda, doc/supported-tags.md (`11.3.1-devel-ubuntu20.04`).
    """
    for facts in (pin.release.facts for pin in spec.pins):
        if "image" in facts:
            tag = f"{facts['image']}-{spec.given['flavour']}-{spec.os.id}"
            image = f"{facts['repository']}:{tag}"
            return replace(spec.os, id=f"cuda-{tag}", image=image, bootstrap=False)
    return spec.os


def base_alias(os: OsRelease) -> str:
    """The local name that Dockerfiles stand on, whatever the base came from."""
    return f"imagegen/base:{os.id}"
