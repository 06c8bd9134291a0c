"""Whether an image of exactly a request's recipe exists: on the engine, or in a registry."""

from __future__ import annotations

import re
from dataclasses import dataclass

from imagegen.engine.without_sdk import image_labels
from imagegen.errors import ConfigError, EngineError, PublishError
from imagegen.model.labels import LABEL_RECIPE

_REGISTRY = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*/?")


@dataclass(frozen=True)
class TaggedImages:
    """The images that carry a tag: the recipe digest of the one on the engine, and of the one in a
    registry, each empty where there is none. `reference` names the latter; `note` is a doubt."""

    tag: str
    local: str = ""
    remote: str = ""
    reference: str = ""
    note: str = ""

    @property
    def any(self) -> bool:
        return bool(self.local or self.remote)


@dataclass(frozen=True)
class Found:
    """`where` an image is, empty for nowhere; `reference` names it there; `note` is a doubt."""

    where: str = ""
    reference: str = ""
    note: str = ""


def check_registry(registry: str) -> None:
    """Raises ConfigError for what is not `HOST[:PORT]/PREFIX`."""
    if registry and not _REGISTRY.fullmatch(registry):
        text = f"`{registry!a}` is not a registry"
        raise ConfigError.of(text, hint="HOST/PREFIX, such as `registry.example.org:5000/team`")


def tagged_images(tag: str, registry: str = "") -> TaggedImages:
    """Look for images of a tag, by the label that every build writes; nothing is pulled."""
    local = _label_here(tag)
    if not registry:
        return TaggedImages(tag, local)
    reference = f"{registry.rstrip('/')}/{tag.rpartition('/')[2]}"
    remote, note = _label_there(reference)
    return TaggedImages(tag, local, remote, reference, note)


def image_of(images: TaggedImages, digest: str) -> Found:
    """The image of a recipe among those that carry its tag; `digest` is empty for no recipe.

    A tag alone proves nothing: the same tag can stem from another recipe.
    """
    if not images.any or not digest:
        return Found(note=images.note)
    if images.local == digest:
        return Found("on this engine", images.tag, images.note)
    if images.remote == digest:
        return Found("in the registry", images.reference, images.note)
    return Found(note=images.note or f"an image of the tag `{images.tag}` is of another recipe")


def _label_here(tag: str) -> str:
    """The recipe of the image with a tag; without an engine in reach there is none."""
    return image_labels(tag).get(LABEL_RECIPE, "")


def _label_there(reference: str) -> tuple[str, str]:
    """The recipe of an image in a registry, and why it is not known."""
    # Few requests name a registry, and its client is most of what this module would load.
    from imagegen.engine.client import connect
    from imagegen.engine.registry.remote_images import remote_labels

    try:
        engine = connect()
    except EngineError:
        engine = None
    try:
        return remote_labels(reference, engine).get(LABEL_RECIPE, ""), ""
    except PublishError as error:
        why = "; ".join(part for one in error.problems for part in (one.text, *one.evidence))
        return "", f"the registry was not heard: {why}"
