"""Decide in which ways a release can be installed, and whether templates know the OS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imagegen.errors import RenderError

if TYPE_CHECKING:
    from imagegen.model.image import ImageSpec
    from imagegen.model.release import Release


def need_apt(spec: ImageSpec) -> None:
    """Raise RenderError for an OS without apt, which no template can install on yet."""
    if spec.os.family != "debian":
        raise RenderError.of(
            f"no template installs anything on {spec.os.id} yet: all of them use apt",
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
    ways = {*ways_of(release)}
    own = {version.partition("+")[0] for version in release.wheels.values()}
    if "apt" in ways and release.version.partition("+")[0] not in own:
        ways -= {"wheels", "index"}
    return next((words for way, words in IN_WORDS.items() if way in ways), "")


def ways_of(release: Release) -> tuple[str, ...]:
    """List the ways in which a release can be installed, by the data in its row."""
    data = {
        "apt": release.apt,
        "wheels": release.wheels,
        "index": release.index,
        "tarball": release.tarball,
        "artifact": release.artifact,
        "conda": release.variant == "conda",
        "base": "image" in release.facts,
    }
    return tuple(name for name, there in data.items() if there)
