"""Build small images for one test from instructions on a base, and remove them with the test."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from imagegen.engine.builds.buildkit import BuildRequest, build
from imagegen.engine.builds.context import pack_context
from imagegen.engine.builds.vertex_events import VertexEvent as BuildEvent
from imagegen.engine.images import local_images as images
from imagegen.model.release import OsRelease

if TYPE_CHECKING:
    from collections.abc import Callable

    from imagegen.engine.client import Engine
    from imagegen.model.recipe import ContextFile

LABEL = "io.imagegen.test"

DEBIAN_12 = OsRelease(
    id="debian12",
    family="debian",
    os_id="debian",
    version_id="12",
    suite="bookworm",
    image="debian:bookworm-slim",
    glibc="2.36",
    lib_dir="/usr/lib/x86_64-linux-gnu",
    bootstrap=True,
    source="",
    file="",
)


class Builder:
    """Build images that a test need not remove. Every build has a token of its own."""

    def __init__(self, engine: Engine, base: str) -> None:
        self.engine, self.base, self.events = engine, base, list[BuildEvent]()
        self.built: set[str] = set()

    def __call__(
        self,
        *instructions: str,
        files: tuple[ContextFile, ...] = (),
        on_event: Callable[[BuildEvent], None] | None = None,
        build_id: str = "",
        tag: str = "",
    ) -> str:
        """Build the instructions on the base and return the image id; `events` holds the events."""
        dockerfile = "\n".join([f"FROM {self.base}", *instructions, ""])
        request = BuildRequest(
            context=pack_context(dockerfile, files),
            build_id=build_id or f"test-{secrets.token_hex(6)}",
            labels={LABEL: secrets.token_hex(6)},
            tag=tag,
        )
        self.events = []
        image_id = build(self.engine, request, on_event or self.events.append)
        self.built.add(image_id)
        return image_id

    def clean(self) -> None:
        for image_id in self.built:
            images.remove(self.engine, image_id, force=True)
