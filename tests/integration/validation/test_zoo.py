"""Test `validate` on images that are broken on purpose: it names exactly what is broken.

An animal of the zoo is a folder with a Dockerfile that breaks one thing in a healthy image, and
`expect.yaml`: the healthy image, and the ids of the checks that fail or warn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from zoo_keeper import ZOO, animals, examples, ids

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet
    from command_line import CommandLine
    from zoo_keeper import Animal, Zoo

BASES = ["small", "harp"]
ANIMALS = animals()
EXAMPLES = examples(ANIMALS)


def short_or_long(animal: Animal) -> ParameterSet:
    marks = () if animal.name in EXAMPLES else (pytest.mark.long,)
    return pytest.param(animal, marks=marks, id=animal.name)


@pytest.mark.parametrize("base", BASES)
def test_what_the_others_stand_on_is_healthy(zoo: Zoo, base: str) -> None:
    report = zoo.healthy(base)
    assert ids(report, "failed") == ids(report, "error") == []
    passed = {*ids(report, "passed")}
    assert {"rdma.pabi", "ssh.login", "os.elf-deps"} <= passed
    if base == "harp":
        assert {"nccl.version", "plugin.abi", "plugin.load", "cudnn.version"} <= passed
        assert {"cuda.cudart", "cuda.toolkit"} <= passed


@pytest.mark.parametrize("animal", [short_or_long(animal) for animal in ANIMALS])
def test_what_is_broken_is_named_and_nothing_else(zoo: Zoo, animal: Animal) -> None:
    report, healthy = zoo.look_at(animal), zoo.healthy(animal.image, animal.tier)
    assert ids(report, "failed") == [*animal.fails]
    assert {*ids(report, "warned")} - {*ids(healthy, "warned")} == {*animal.warns}
    assert ids(report, "error") == []
    assert report["exit_code"] == animal.exit_code
    for check in report["checks"]:
        if check["id"] in animal.named:
            assert check["measured"]
            assert check["cause"]
            assert check["remedy"]


def test_the_command_line_names_what_is_broken(zoo: Zoo, command_line: CommandLine) -> None:
    ref = zoo.keeper.make(ZOO / "second-mpi-on-path", zoo.family["debian13-none"])
    arguments = ("validate", "--static", "--only", "openmpi", "--format", "json", ref)
    (problem,) = command_line(*arguments, code=7).documents[-1]["errors"]
    named = [line.partition(":")[0] for line in problem["evidence"] if not line.startswith(" ")]
    assert named == ["mpi.single"]


def test_the_zoo_has_what_breaks_in_the_field() -> None:
    assert len(ANIMALS) >= 30
    suites = {name.partition(".")[0] for animal in ANIMALS for name in animal.named}
    assert suites >= {
        *("env", "os", "py", "torch", "hvd", "mpi", "ssh", "rdma", "image", "lim"),
        *("cuda", "cudnn", "nccl", "plugin", "harp"),
    }
