"""Images broken on purpose: `validate` names exactly what is broken, and healthy ones pass.

An animal of the zoo is a folder with a Dockerfile, one breakage on top of a healthy image, and
`expect.yaml`: the image that it stands on, and the ids of the checks that fail or warn.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from command_line import Ended, command_line_in
from zoo_keeper import ZOO, Animal, Keeper, animals, ids

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from imagegen.engine.client import Engine

CELLS = ["debian12-none", "debian12-rdma-core", "debian13-none", "debian13-rdma-core"]
BASES = ["small", "harp"]
ANIMALS = animals()
IN_LAYERS = "key-in-a-deleted-layer"
AT_ONCE = 3


@dataclass(frozen=True)
class Zoo:
    """What was said of everything, as it comes in."""

    cells: Mapping[str, Future[Ended]]
    reports: Mapping[str, Future[dict[str, Any]]]

    def of(self, name: str) -> dict[str, Any]:
        """The report on an image, healthy or not."""
        if name in self.cells:
            (row,) = self.cells[name].result().result
            return dict(row["report"])
        return self.reports[name].result()


@pytest.fixture(scope="module")
def zoo(
    engine: Engine, cpu_family: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Zoo]:
    """Some images at a time: most of the time of each goes by in one thread, or in waiting."""
    keeper = Keeper(engine, tmp_path_factory.mktemp("parts"))

    def command_line(ref: str) -> Ended:
        run = command_line_in(tmp_path_factory.mktemp("zoo"))
        return run("validate", "--format", "json", ref)

    def look_at(animal: Animal, on: str) -> dict[str, Any]:
        ref = keeper.make(ZOO / animal.name, on)
        return keeper.look(ref, animal.run, look_into_layers=animal.name == IN_LAYERS)

    try:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            try:
                cells = {cell: pool.submit(command_line, cpu_family[cell]) for cell in CELLS}
                healthy = dict(cpu_family)
                healthy["small"] = keeper.small(cpu_family["debian13-rdma-core"])
                healthy["harp"] = keeper.harp(healthy["small"])
                reports = {name: pool.submit(keeper.look, healthy[name], ()) for name in BASES}
                ill = {a.name: pool.submit(look_at, a, healthy[a.image]) for a in ANIMALS}
                yield Zoo(cells, {**reports, **ill})
            finally:
                pool.shutdown(cancel_futures=True)
    finally:
        keeper.clean()


@pytest.mark.parametrize("cell", CELLS)
def test_a_healthy_image_passes(zoo: Zoo, cell: str) -> None:
    report = zoo.of(cell)
    assert ids(report, "failed") == ids(report, "error") == []
    passed = ids(report, "passed")
    assert len(passed) > 30
    assert {"torch.version", "mpi.2rank", "ssh.login", "image.private-key-in-layer"} <= {*passed}
    assert ("hvd.size" in passed) == cell.startswith("debian12")
    assert ("rdma.provider" in passed) == cell.endswith("rdma-core")


@pytest.mark.parametrize("base", BASES)
def test_what_the_others_stand_on_is_healthy(zoo: Zoo, base: str) -> None:
    report = zoo.of(base)
    assert ids(report, "failed") == ids(report, "error") == []
    passed = {*ids(report, "passed")}
    assert {"rdma.pabi", "ssh.login", "os.elf-deps"} <= passed
    if base == "harp":
        assert {"nccl.version", "plugin.abi", "plugin.load", "cudnn.version"} <= passed
        assert {"cuda.cudart", "cuda.toolkit"} <= passed


@pytest.mark.parametrize("animal", ANIMALS, ids=lambda animal: animal.name)
def test_what_is_broken_is_named_and_nothing_else(zoo: Zoo, animal: Animal) -> None:
    report, healthy = zoo.of(animal.name), zoo.of(animal.image)
    assert ids(report, "failed") == [*animal.fails]
    assert {*ids(report, "warned")} - {*ids(healthy, "warned")} == {*animal.warns}
    assert ids(report, "error") == []
    assert report["exit_code"] == animal.exit_code
    for check in report["checks"]:
        if check["id"] in animal.named:
            assert check["measured"]
            assert check["cause"]
            assert check["remedy"]


def test_the_command_line_names_what_is_broken(
    engine: Engine, cpu_family: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    keeper = Keeper(engine, tmp_path_factory.mktemp("parts"))
    try:
        ref = keeper.make(ZOO / "second-mpi-on-path", cpu_family["debian13-none"])
        run = command_line_in(tmp_path_factory.mktemp("zoo"))
        arguments = ("validate", "--static", "--only", "openmpi", "--format", "json", ref)
        (problem,) = run(*arguments, code=7).documents[-1]["errors"]
    finally:
        keeper.clean()
    named = [line.partition(":")[0] for line in problem["evidence"] if not line.startswith(" ")]
    assert named == ["mpi.single"]


def test_the_zoo_has_what_breaks_in_the_field() -> None:
    assert len(ANIMALS) >= 30
    suites = {name.partition(".")[0] for animal in ANIMALS for name in animal.named}
    assert suites >= {
        *("env", "os", "py", "torch", "hvd", "mpi", "ssh", "rdma", "image", "lim"),
        *("cuda", "cudnn", "nccl", "plugin", "harp"),
    }
