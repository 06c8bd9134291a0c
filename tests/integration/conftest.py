"""What tests with a real engine stand on. Without one they fail: nothing is skipped."""

from __future__ import annotations

import secrets
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from another_engine import docker_26
from command_line import CommandLine, command_line_in
from registry import registry
from tiny_family import TinyFamily, TinyMaker

from imagegen.engine.builds.buildkit import BuildRequest, build
from imagegen.engine.builds.context import pack_context
from imagegen.engine.builds.vertex_events import VertexEvent
from imagegen.engine.client import Engine, connect
from imagegen.engine.images import local_images
from imagegen.engine.images.bases import ensure_base
from imagegen.model.base import base_alias
from imagegen.model.catalog import OsRelease

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from imagegen.model.recipe import ContextFile

__all__ = ["registry"]

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


ON_BOTH = {
    "test_build",
    "test_engine_builds",
    "test_packing",
    "test_publish",
    "test_stale",
    "test_steps",
}
"""The main path: what these modules hold is tested on this machine's engine and on Docker 26."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "engine" in metafunc.fixturenames and metafunc.module.__name__ in ON_BOTH:
        metafunc.parametrize("engine", ["here", "docker26"], indirect=True, scope="session")


@pytest.fixture(scope="session")
def engine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engine]:
    """The engine of this machine, or the other one of the main path's tests."""
    connected = connect()
    with closing(connected.api):
        if getattr(request, "param", "here") == "here":
            yield connected
            return
        with docker_26(
            tmp_path_factory.mktemp("docker26"), connected, base_alias(DEBIAN_12)
        ) as other:
            there = other.connected()
            with closing(there.api):
                yield there


@pytest.fixture(scope="session")
def tiny_base(engine: Engine) -> Iterator[str]:
    """The reference of a minimal Debian 12; removed in the end if it was not there before."""
    before = local_images.find(engine, "imagegen/base:debian12")
    yield ensure_base(engine, DEBIAN_12, "auto", lambda _: None).ref
    if before is None:
        local_images.remove(engine, "imagegen/base:debian12", force=True)


class Builder:
    """Builds images that a test need not clean up. Every build has a token of its own."""

    def __init__(self, engine: Engine, base: str) -> None:
        self.engine, self.base, self.events = engine, base, list[VertexEvent]()
        self.built: set[str] = set()

    def __call__(
        self,
        *instructions: str,
        files: tuple[ContextFile, ...] = (),
        on_event: Callable[[VertexEvent], None] | None = None,
        build_id: str = "",
        tag: str = "",
    ) -> str:
        """Build the instructions on the base; the image id. `events` holds what was told."""
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
            local_images.remove(self.engine, image_id, force=True)


@pytest.fixture
def builder(engine: Engine, tiny_base: str) -> Iterator[Builder]:
    made = Builder(engine, tiny_base)
    yield made
    made.clean()


@pytest.fixture
def token() -> str:
    """Text that no step of an earlier run had: nothing comes from the cache."""
    return secrets.token_hex(6)


@pytest.fixture
def command_line(tmp_path: Path) -> CommandLine:
    """`imagegen` in an empty folder, with an empty state."""
    return command_line_in(tmp_path)


@pytest.fixture(scope="module")
def make_tiny(
    engine: Engine, tiny_base: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TinyMaker]:
    """Makes families without components and without a matrix; nothing of them stays."""
    del tiny_base
    maker = TinyMaker(engine, lambda: tmp_path_factory.mktemp("tiny"))
    yield maker
    maker.clean()


@pytest.fixture
def tiny(make_tiny: TinyMaker) -> TinyFamily:
    return make_tiny()


COLD_SECONDS = 1500
"""For the first test with a real family, which builds all of it where nothing is in the cache."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "cpu_family" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(COLD_SECONDS))


@pytest.fixture(scope="session")
def cpu_family(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Cell -> image of the matrix `cpu`, built by the real command line. The images stay."""
    del engine
    run = command_line_in(tmp_path_factory.mktemp("cpu"))
    rows = run("build", "--matrix", "cpu", "--format", "json", seconds=COLD_SECONDS).result
    return {row["cell"].removeprefix("cpu/"): row["image"] for row in rows}


@pytest.fixture(scope="session")
def cpu_image(cpu_family: dict[str, str]) -> str:
    """The image with everything in it."""
    return cpu_family["debian12-rdma-core"]
