"""Find an existing image of exactly a request's recipe: on the engine, or in a registry."""

from __future__ import annotations

import re
from dataclasses import dataclass

from imagegen.engine.without_sdk import image_labels
from imagegen.errors import ConfigError, EngineError, PublishError
from imagegen.model.labels import LABEL_RECIPE

_REGISTRY = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*/?")


@dataclass(frozen=True)
class TaggedImages:
    """The images with a tag, each as its recipe digest, empty where there is none.

    `local` is on the engine, `remote` in a registry, where `reference` names it; `note` is a doubt.
    """

    tag: str
    local: str = ""
    remote: str = ""
    reference: str = ""
    note: str = ""

    @property
    def any(self) -> bool:
        """Say whether there is any image with the tag."""
        return bool(self.local or self.remote)


@dataclass(frozen=True)
class Found:
    """The place of an image (`where`, empty for none) and its name there; `note` is a doubt."""

    where: str = ""
    reference: str = ""
    note: str = ""


def check_registry(registry: str) -> None:
    """Raise ConfigError for a text that is not `HOST[:PORT]/PREFIX`."""
    if registry and not _REGISTRY.fullmatch(registry):
        text = f"`{registry!a}` is not a registry"
        raise ConfigError.of(text, hint="HOST/PREFIX, such as `registry.example.org:5000/team`")


def tagged_images(tag: str, registry: str = "") -> TaggedImages:
    """Look for images with a tag, by the label that every build writes; pull nothing."""
    local = _label_here(tag)
    if not registry:
        return TaggedImages(tag, local)
    reference = f"{registry.rstrip('/')}/{tag.rpartition('/')[2]}"
    remote, note = _label_there(reference)
    return TaggedImages(tag, local, remote, reference, note)


def image_of(images: TaggedImages, digest: str) -> Found:
    """Find the image of a recipe among those with its tag; `digest` is empty for no recipe.

    A tag alone proves nothing: an image with the same tag can be of another recipe.
    """
    if not images.any or not digest:
        return Found(note=images.note)
    if images.local == digest:
        return Found("on this engine", images.tag, images.note)
    if images.remote == digest:
        return Found("in the registry", images.reference, images.note)
    return Found(note=images.note or f"an image of the tag `{images.tag}` is of another recipe")


def _label_here(tag: str) -> str:
    """Read the recipe of the image with a tag; empty if no engine can be reached."""
    return image_labels(tag).get(LABEL_RECIPE, "")


def _label_there(reference: str) -> tuple[str, str]:
    """Read the recipe of an image in a registry, or why it is not known."""
    # Few requests name a registry, and its client takes most of the time to load this module.
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
