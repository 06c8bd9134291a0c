"""Read all facts about an image: what the engine reports, and what is in it.

What an image cannot report (it does not start, it has no dpkg) is listed as missing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from imagegen.engine.client import is_alive
from imagegen.engine.images import local_images
from imagegen.engine.images.contents import (
    LOOK_SECONDS,
    ImageContents,
    read_contents,
    run_script,
)
from imagegen.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from imagegen.engine.client import Engine


@dataclass(frozen=True)
class Layer:
    """Describe a layer: digest, instruction that made it, bytes (-1 where they are unknown)."""

    digest: str
    made_by: str = ""
    size_bytes: int = -1


@dataclass(frozen=True)
class Inventory:
    """Hold the facts about an image; `missing` says in words what could not be read."""

    ref: str
    id: str
    created: str
    size_bytes: int
    labels: Mapping[str, str]
    env: Mapping[str, str]
    layers: tuple[Layer, ...]
    contents: ImageContents = field(default_factory=ImageContents)
    missing: tuple[str, ...] = ()


def inventory(engine: Engine, ref: str, *, sizes: bool = True) -> Inventory:
    """Read an image; without `sizes` it takes half the time, and folders have no sizes.

    Raises EngineError where the engine has no such image, or dies. Of an image that does not start
    only the engine's facts are read.
    """
    described = local_images.inspect(engine, ref)
    config = described.get("Config") or {}
    digests, history = described["RootFS"].get("Layers") or (), local_images.history(engine, ref)
    contents, missing = _look(engine, str(described["Id"]), sizes)
    return Inventory(
        ref=ref,
        id=str(described["Id"]),
        created=str(described.get("Created") or ""),
        size_bytes=int(described["Size"]),
        labels=dict(config.get("Labels") or {}),
        env=dict(one.partition("=")[::2] for one in config.get("Env") or ()),
        layers=layers_of(digests, history),
        contents=contents,
        missing=missing,
    )


def _look(engine: Engine, image_id: str, sizes: bool) -> tuple[ImageContents, tuple[str, ...]]:
    try:
        ended = run_script(engine, image_id, sizes)
    except EngineError as error:
        if not is_alive(engine):
            raise
        why = "; ".join(line for problem in error.problems for line in problem.evidence)
        return ImageContents(), (f"what is inside: it does not start `sleep` and `sh` ({why})",)
    if ended.timed_out:
        text = f"what is inside: it was not read within {LOOK_SECONDS} s"
        return ImageContents(), (text,)
    found = read_contents(ended.out.splitlines())
    return found, _missing(found, sizes)


def _missing(found: ImageContents, sizes: bool) -> tuple[str, ...]:
    missing = []
    if not found.debs:
        missing.append("system packages: it has no dpkg")
    if not found.sonames:
        missing.append("shared libraries: its loader keeps no list")
    if sizes and not found.folders:
        missing.append("where the bytes are: it has no `du`, or no `awk`")
    return tuple(missing)


_MAKES_NO_LAYER = re.compile(
    r"(/bin/sh -c #\(nop\) +)?(ARG|CMD|ENTRYPOINT|ENV|EXPOSE|HEALTHCHECK|LABEL|MAINTAINER|ONBUILD"
    r"|SHELL|STOPSIGNAL|USER|VOLUME)\b"
)


def layers_of(digests: Sequence[str], history: Sequence[tuple[str, int]]) -> tuple[Layer, ...]:
    """Match each layer with the entry of the history that made it.

    Instructions that only set something make no layer, and a WORKDIR makes one or none. Where the
    counts still differ, layers have only their digests.
    """
    made = [row for row in history if row[1] or not _MAKES_NO_LAYER.match(row[0])]
    if len(made) > len(digests):
        made = [row for row in made if row[1] or "WORKDIR" not in row[0]]
    if len(made) != len(digests):
        return tuple(map(Layer, digests))
    return tuple(
        Layer(digest, text, size) for digest, (text, size) in zip(digests, made, strict=True)
    )
