"""Test `validate` on images that are broken on purpose: it names what is broken, and nothing else.

An animal of the zoo is a folder with a Dockerfile that breaks one thing in a healthy image, and
`expect.yaml`: the healthy image, and the ids of the checks that fail or warn. Healthy images have
to pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from command_line import command_line_in
from zoo_keeper import ZOO, Animal, Keeper, Zoo, animals, examples, ids

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _pytest.mark import ParameterSet

    from imagegen.engine.client import Engine

CELLS = ["debian12-none", "debian12-rdma-core", "debian13-none", "debian13-rdma-core"]
BASES = ["small", "harp"]
ANIMALS = animals()
EXAMPLES = examples(ANIMALS)
IN_SHORT = {"debian12-rdma-core", "debian13-none", *BASES}
"""Healthy images of `make test`: both releases, with and without RDMA, with and without Horovod."""


@pytest.fixture(scope="session")
def zoo(
    this_engine: Engine, cpu_family: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Zoo]:
    keeper = Keeper(this_engine, tmp_path_factory.mktemp("parts"))
    yield Zoo(keeper, cpu_family, command_line_in(tmp_path_factory.mktemp("zoo")))
    keeper.clean()


def of(image: str, *, short: bool) -> list[pytest.MarkDecorator]:
    """Put all tests of one healthy image into one process, so that the image is checked once."""
    group = pytest.mark.xdist_group(f"zoo-{image}")
    return [group] if short else [group, pytest.mark.long]


def healthy_one(name: str) -> ParameterSet:
    return pytest.param(name, marks=of(name, short=name in IN_SHORT))


def ill_one(animal: Animal) -> ParameterSet:
    marks = of(animal.image, short=animal.name in EXAMPLES)
    return pytest.param(animal, marks=marks, id=animal.name)


@pytest.mark.parametrize("cell", [healthy_one(cell) for cell in CELLS])
def test_a_healthy_image_passes(zoo: Zoo, cell: str) -> None:
    report = zoo.healthy(cell)
    assert ids(report, "failed") == ids(report, "error") == []
    passed = ids(report, "passed")
    assert len(passed) > 30
    assert {"torch.version", "mpi.2rank", "ssh.login", "image.private-key-in-layer"} <= {*passed}
    assert ("hvd.size" in passed) == cell.startswith("debian12")
    assert ("rdma.provider" in passed) == cell.endswith("rdma-core")


@pytest.mark.parametrize("base", [healthy_one(base) for base in BASES])
def test_what_the_others_stand_on_is_healthy(zoo: Zoo, base: str) -> None:
    report = zoo.healthy(base)
    assert ids(report, "failed") == ids(report, "error") == []
    passed = {*ids(report, "passed")}
    assert {"rdma.pabi", "ssh.login", "os.elf-deps"} <= passed
    if base == "harp":
        assert {"nccl.version", "plugin.abi", "plugin.load", "cudnn.version"} <= passed
        assert {"cuda.cudart", "cuda.toolkit"} <= passed


@pytest.mark.parametrize("animal", [ill_one(animal) for animal in ANIMALS])
def test_what_is_broken_is_named_and_nothing_else(zoo: Zoo, animal: Animal) -> None:
    report, healthy = zoo.look_at(animal), zoo.beside(animal)
    assert ids(report, "failed") == [*animal.fails]
    assert {*ids(report, "warned")} - {*ids(healthy, "warned")} == {*animal.warns}
    assert ids(report, "error") == []
    assert report["exit_code"] == animal.exit_code
    for check in report["checks"]:
        if check["id"] in animal.named:
            assert check["measured"]
            assert check["cause"]
            assert check["remedy"]


@pytest.mark.xdist_group("zoo-debian13-none")
def test_the_command_line_names_what_is_broken(zoo: Zoo) -> None:
    ref = zoo.keeper.make(ZOO / "second-mpi-on-path", zoo.family["debian13-none"])
    arguments = ("validate", "--static", "--only", "openmpi", "--format", "json", ref)
    (problem,) = zoo.run(*arguments, code=7).documents[-1]["errors"]
    named = [line.partition(":")[0] for line in problem["evidence"] if not line.startswith(" ")]
    assert named == ["mpi.single"]


def test_the_zoo_has_what_breaks_in_the_field() -> None:
    assert len(ANIMALS) >= 30
    suites = {name.partition(".")[0] for animal in ANIMALS for name in animal.named}
    assert suites >= {
        *("env", "os", "py", "torch", "hvd", "mpi", "ssh", "rdma", "image", "lim"),
        *("cuda", "cudnn", "nccl", "plugin", "harp"),
    }
