"""Find the base image of an image."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from imagegen.model.catalog import OsRelease
    from imagegen.model.image import ImageSpec


def base_of(spec: ImageSpec) -> OsRelease:
    """Return the OS of an image, with the base image that its Dockerfile starts from.

    Where a component's release comes as a base image (CUDA), the result is the OS with that toolkit
    in it. It has an id of its own, comes from a registry only, and its tag is release-flavour-OS.
    Source: NVIDIA container-images/cuda, doc/supported-tags.md (`11.3.1-devel-ubuntu20.04`).
    """
    for pin in spec.pins:
        facts = pin.release.facts
        if "image" in facts:
            tag = f"{facts['image']}-{spec.given['flavour']}-{spec.os.id}"
            image = f"{facts['repository']}:{tag}"
            return replace(spec.os, id=f"{pin.component}-{tag}", image=image, bootstrap=False)
    return spec.os


def base_alias(os: OsRelease) -> str:
    """Return the local name of a base image in Dockerfiles, wherever the base came from."""
    return f"imagegen/base:{os.id}"
