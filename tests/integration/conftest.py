"""Set up tests with a real engine. Without an engine they fail: nothing is skipped."""

from __future__ import annotations

import secrets
from contextlib import closing
from functools import cache
from typing import TYPE_CHECKING

import pytest
from another_engine import docker_26
from command_line import CommandLine, command_line_in
from image_builder import Builder
from registry import registry
from small_base import REF, debian_12, tiny_12
from tiny_family import TinyFamily, TinyMaker
from xdist.scheduler import LoadScopeScheduling
from zoo_keeper import Keeper, Zoo

from imagegen.engine.client import Engine, connect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from xdist.remote import Producer

__all__ = ["registry"]

DOCKER_26 = "docker26"
"""The main path is tested on this machine's engine and on this one."""

BUILDS_FAMILY = "test_cpu_images.py"
COLD_SECONDS = 1500
"""Time limit of the first test with a real family, which builds all of it if the cache is empty."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test with the mark `both_engines` on each engine."""
    mark = metafunc.definition.get_closest_marker("both_engines")
    if mark is None or "engine" not in metafunc.fixturenames:
        return
    marks = (pytest.mark.long,) if mark.kwargs.get("long") else ()
    other = pytest.param(DOCKER_26, marks=marks)
    metafunc.parametrize("engine", ["here", other], indirect=True, scope="session")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the group that builds the family first, and the others that need it last."""
    waiting = {group_of(item.nodeid) for item in items if needs_family(item)}
    for item in items:
        if group_of(item.nodeid) in waiting:
            item.add_marker(pytest.mark.timeout(COLD_SECONDS))
    items.sort(key=lambda item: turn(group_of(item.nodeid), waiting))


def needs_family(item: pytest.Item) -> bool:
    return "cpu_family" in getattr(item, "fixturenames", ())


def turn(group: str, waiting: set[str]) -> int:
    return 0 if group.endswith(BUILDS_FAMILY) else 1 + (group in waiting)


def group_of(nodeid: str) -> str:
    """Return the group of a test: its module, whose tests share builds, or that of Docker 26."""
    module, _, name = nodeid.partition("::")
    return DOCKER_26 if f"[{DOCKER_26}" in name else module


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Give each group to one process, in the order of the tests."""
    config.option.loadscopereorder = False
    made = LoadScopeScheduling(config, log)
    made._split_scope = group_of
    return made


@pytest.fixture(scope="session")
def this_engine() -> Iterator[Engine]:
    """Connect to the engine of this machine."""
    connected = connect()
    with closing(connected.api):
        yield connected


@pytest.fixture(scope="session")
def engine(
    request: pytest.FixtureRequest, this_engine: Engine, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engine]:
    """Connect to the engine of this machine, or to the other one in tests of the main path."""
    if getattr(request, "param", "here") != DOCKER_26:
        yield this_engine
        return
    base = tiny_12(this_engine)
    with docker_26(tmp_path_factory.mktemp(DOCKER_26), this_engine, base) as other:
        there = other.connected()
        with closing(there.api):
            yield there


@pytest.fixture(scope="session")
def tiny_base(engine: Engine, this_engine: Engine) -> str:
    """Return the reference of a base of about 30 MB."""
    return tiny_12(engine) if engine is this_engine else REF


@pytest.fixture(scope="session")
def debian_base(engine: Engine) -> str:
    """Return the reference of a minimal Debian 12."""
    return debian_12(engine)


@pytest.fixture
def builder(engine: Engine, tiny_base: str) -> Iterator[Builder]:
    made = Builder(engine, tiny_base)
    yield made
    made.clean()


@pytest.fixture
def token() -> str:
    """Return text that no step of an earlier run had, so that nothing comes from the cache."""
    return secrets.token_hex(6)


@pytest.fixture
def command_line(tmp_path: Path) -> CommandLine:
    """Return `imagegen` in an empty folder, with an empty state."""
    return command_line_in(tmp_path)


@pytest.fixture(scope="module")
def make_tiny(
    engine: Engine, this_engine: Engine, tiny_base: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TinyMaker]:
    """Make families without components and without a matrix; remove all of them at the end."""
    del tiny_base
    address = "" if engine is this_engine else engine.endpoint.url
    maker = TinyMaker(engine, lambda: tmp_path_factory.mktemp("tiny"), address)
    yield maker
    maker.clean()


@pytest.fixture
def tiny(make_tiny: TinyMaker) -> TinyFamily:
    return make_tiny()


def built(folder: Path, matrix: str) -> dict[str, str]:
    """Build a matrix with the real command line; cell -> image. The images stay."""
    run = command_line_in(folder)
    rows = run("build", "--matrix", matrix, "--format", "json", seconds=COLD_SECONDS).result
    return {row["cell"]: row["image"] for row in rows}


@pytest.fixture(scope="session")
def cpu_family(this_engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Build the matrix `cpu`; cell -> image."""
    del this_engine
    family = built(tmp_path_factory.mktemp("cpu"), "cpu")
    return {cell.removeprefix("cpu/"): image for cell, image in family.items()}


@pytest.fixture(scope="session")
def other_family(
    this_engine: Engine, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], dict[str, str]]:
    """Build another shipped matrix when a test first asks for it; `matrix/cell` -> image."""
    del this_engine
    return cache(lambda matrix: built(tmp_path_factory.mktemp(matrix), matrix))


@pytest.fixture(scope="session")
def cpu_image(cpu_family: dict[str, str]) -> str:
    """Return the image with all components."""
    return cpu_family["debian12-rdma-core"]


@pytest.fixture(scope="module")
def zoo(
    this_engine: Engine,
    cpu_family: dict[str, str],
    other_family: Callable[[str], dict[str, str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Zoo]:
    """Build broken images on the families, and remove them."""
    keeper = Keeper(this_engine, tmp_path_factory.mktemp("parts"))
    yield Zoo(keeper, cpu_family, other_family)
    keeper.clean()
