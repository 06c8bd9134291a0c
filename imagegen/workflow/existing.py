"""Whether an image of exactly a request's recipe exists: on the engine, or in a registry."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from imagegen.errors import ConfigError, EngineError, PublishError, RenderError
from imagegen.model.labels import LABEL_RECIPE

if TYPE_CHECKING:
    from imagegen.model.image import ImageSpec
    from imagegen.workflow.project import House

_REGISTRY = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*/?")


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


def look_for(house: House, spec: ImageSpec, registry: str = "") -> Found:
    """An image of this recipe, by the label that every build writes; nothing is pulled.

    A tag alone proves nothing: the same tag can stem from another recipe. Without an image of that
    tag nothing is rendered.
    """
    local = _label_here(spec.tag)
    reference = f"{registry.rstrip('/')}/{spec.tag.rpartition('/')[2]}" if registry else ""
    remote, note = _label_there(reference) if registry else ("", "")
    if not local and not remote:
        return Found(note=note)
    try:
        digest = house.recipe_of(spec).digest
    except RenderError:
        return Found(note=note)
    if local == digest:
        return Found("on this engine", spec.tag, note)
    if remote == digest:
        return Found("in the registry", reference, note)
    return Found(note=note or f"an image of the tag `{spec.tag}` is of another recipe")


def _label_here(tag: str) -> str:
    """The recipe of the image with a tag; without an engine in reach there is none."""
    from imagegen.engine.without_sdk import image_labels

    return image_labels(tag).get(LABEL_RECIPE, "")


def _label_there(reference: str) -> tuple[str, str]:
    """The recipe of an image in a registry, and why it is not known."""
    from imagegen.engine.client import connect
    from imagegen.engine.registry.remote_images import labels_of

    try:
        engine = connect()
    except EngineError:
        engine = None
    try:
        return labels_of(reference, engine).get(LABEL_RECIPE, ""), ""
    except PublishError as error:
        why = "; ".join(part for one in error.problems for part in (one.text, *one.evidence))
        return "", f"the registry was not heard: {why}"
