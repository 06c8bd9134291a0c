"""Define an image: a cell with every component pinned, and its base image."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from imagegen.model.cell import Cell
    from imagegen.model.release import OsRelease, Release


@dataclass(frozen=True)
class Pin:
    """A component at the release that the resolver chose, and who asked for it."""

    component: str
    release: Release
    via: tuple[str, ...]

    @property
    def version(self) -> str:
        """Return the version of the release."""
        return self.release.version


@dataclass(frozen=True)
class ImageSpec:
    """A cell with every component pinned.

    `tag` is the full local reference of the image. `given` has the virtual names (GPU, driver, …)
    with their values; `warnings` are sentences. `interpreter` is the component that is the Python
    of images.
    """

    cell: Cell
    os: OsRelease
    pins: tuple[Pin, ...]
    tag: str
    given: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    interpreter: str = ""

    def pin(self, component: str) -> Pin | None:
        """Return the pin of a component; None where the image does not have it."""
        return next((pin for pin in self.pins if pin.component == component), None)

    @property
    def python(self) -> str:
        """Return the version of the image's Python; empty where it has none."""
        pin = self.pin(self.interpreter)
        return pin.version if pin else ""


FLAVOUR = "flavour"


def exact_pins(spec: ImageSpec) -> dict[str, str]:
    """Map the OS and the components of an image to `version` or `version variant`.

    Where an image is with or without compilers, its flavour is among them.
    """
    pins = {"os": spec.os.id} | {pin.component: pin.release.pinned for pin in spec.pins}
    return pins | {name: spec.given[name] for name in (FLAVOUR,) if name in spec.given}


def layer_name(spec: ImageSpec, pin: Pin) -> str:
    """Name a component's layer in a few words, such as `2.6.0 cuda`.

    The words are its version, its variant, and the values chosen for its virtual names.
    """
    chosen = [spec.given[name] for name in sorted(pin.release.requires) if name in spec.given]
    return " ".join(filter(None, [pin.version, pin.release.variant, *chosen]))


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


MOST_NAME = 255
MOST_TAG = 128
"""The most characters of the name of an image, and of its tag.

Source: github.com/distribution/reference, `reference.go`.
"""

_PART = re.compile(r"[a-z0-9]+((\.|__?|-+)[a-z0-9]+)*")
_HOST = re.compile(r"([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(:[0-9]+)?")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def name_problem(reference: str) -> str:
    """Say what is wrong with `[HOST[:PORT]/]NAME[:TAG]`; empty where nothing is."""
    host, slash, rest = reference.partition("/")
    if slash and (set(host) & {".", ":", "["} or host == "localhost" or host != host.lower()):
        if not _HOST.fullmatch(host):
            return f"`{host!a}` is not a registry"
        name, _, tag = rest.partition(":")
    else:
        host, (name, _, tag) = "", reference.partition(":")
    if not name:
        return "it has no name"
    if (length := len(f"{host}{slash}{name}" if host else name)) > MOST_NAME:
        return f"its name has {length} characters, {MOST_NAME} are allowed"
    wrong = [part for part in name.split("/") if not _PART.fullmatch(part)]
    if wrong:
        return (
            f"`{wrong[0]!a}` cannot be a part of a name: lower-case letters, digits, `-._` inside"
        )
    if len(tag) > MOST_TAG:
        return f"its tag has {len(tag)} characters, {MOST_TAG} are allowed"
    if not tag and ":" in reference.rpartition("/")[2]:
        return "its tag is empty"
    if tag and not _TAG.fullmatch(tag):
        return f"`{tag!a}` cannot be a tag: letters, digits, `_`, and `-` and `.` behind the first"
    return ""
