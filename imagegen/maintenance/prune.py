"""Decide what may be removed from an engine, from a list of what it has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from imagegen.model.labels import LABEL_CELL, LABEL_MATRIX, LABEL_TITLE, LABEL_UNTIL

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence, Set

    from imagegen.engine.images.engine_contents import EngineContents, KeptImage


@dataclass(frozen=True)
class Goes:
    """Describe an image that may be removed, and why; `size_bytes` are those that it alone has."""

    id: str
    cell: str
    why: str
    size_bytes: int


def superfluous(
    found: EngineContents,
    published: Set[str],
    matrices: Sequence[str] = (),
    being_built: Callable[[str], bool] = lambda _: False,
) -> list[Goes]:
    """List the images that may be removed.

    They have no tag, were never published, and are used by no container and no build. `matrices`
    limits the list to these. `being_built` says whether a build works on a tag now.
    """
    kept = [image for image in found.images if _of(image, matrices)]
    tagged = {_cell(image) for image in kept if image.labels.get(LABEL_TITLE) in image.tags}
    return [
        Goes(image.id, _cell(image), _why(image, tagged), image.own_bytes)
        for image in kept
        if not image.tags
        and image.id not in published
        and image.id not in found.used
        and not being_built(image.labels.get(LABEL_TITLE, ""))
    ]


def without_image(
    with_sbom: Iterable[str], removed: Collection[str], on_engine: Set[str], published: Set[str]
) -> list[str]:
    """List the images whose SBOMs may be removed, because the image is or was removed.

    `with_sbom` are the images with SBOMs, `removed` those that are removed now. An image that was
    published still exists somewhere, so its SBOMs are kept.
    """
    return sorted(
        one
        for one in with_sbom
        if one not in published and (one in removed or one not in on_engine)
    )


def _of(image: KeptImage, matrices: Sequence[str]) -> bool:
    return not matrices or image.labels[LABEL_MATRIX] in matrices


def _cell(image: KeptImage) -> str:
    return f"{image.labels[LABEL_MATRIX]}/{image.labels.get(LABEL_CELL, '?')}"


def _why(image: KeptImage, tagged: Set[str]) -> str:
    if LABEL_UNTIL in image.labels:
        return "ends in the middle: it was built with --until"
    if _cell(image) in tagged:
        return "superseded: another image has its tag"
    return "left over: it never got its tag, or lost it"
