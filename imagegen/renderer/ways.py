"""Decide in which ways a release can be installed, and whether templates know the OS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imagegen.errors import RenderError

if TYPE_CHECKING:
    from imagegen.model.image import ImageSpec
    from imagegen.model.release import Release


def need_apt(spec: ImageSpec) -> None:
    """Raise RenderError for an OS that no template can install on yet, such as one without apt."""
    if spec.os.obstacle:
        raise RenderError.of(
            spec.os.obstacle,
            evidence=[f"`{spec.tag}` asks for it", f"{spec.os.file}: family {spec.os.family}"],
            hint="choose an OS of the Debian family, such as ubuntu22.04 or debian12",
        )


IN_WORDS = {
    "artifact": "vendor part",
    "conda": "conda package",
    "base": "base image",
    "tarball": "archive",
    "index": "wheel index",
    "wheels": "pip wheel",
    "apt": "apt packages",
}


def in_words(release: Release) -> str:
    """Say in two words where the files of a release come from.

    Packages of the OS are named rather than wheels that come with them.
    """
    ways = {*release.ways}
    own = {version.partition("+")[0] for version in release.wheels.values()}
    if "apt" in ways and release.version.partition("+")[0] not in own:
        ways -= {"wheels", "index"}
    return next((words for way, words in IN_WORDS.items() if way in ways), "")
