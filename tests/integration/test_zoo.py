"""Images broken on purpose: `validate` names exactly what is broken, and healthy ones pass.

An animal of the zoo is a folder with a Dockerfile, one breakage on top of a real image, and
`expect.yaml`: the cell that it stands on, and the ids of the checks that fail.
"""

from __future__ import annotations

import secrets
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from command_line import Ended, command_line_in
from conftest import LABEL

from imagegen.engine import images
from imagegen.engine.buildkit import BuildRequest, build, pack_context

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from concurrent.futures import Future

    from imagegen.engine.client import Engine

    Answers = Mapping[str, Future[Ended]]

ZOO = Path(__file__).parent / "zoo"
ANIMALS = sorted(path.parent.name for path in ZOO.glob("*/Dockerfile"))
CELLS = ["debian12-none", "debian12-rdma-core", "debian13-none", "debian13-rdma-core"]
AT_ONCE = 2


def expected(animal: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ZOO / animal / "expect.yaml").read_text())
    return found


def broken_image(engine: Engine, animal: str, on: str) -> str:
    """The image id of an animal."""
    request = BuildRequest(
        context=pack_context((ZOO / animal / "Dockerfile").read_text(), ()),
        build_id=f"test-{secrets.token_hex(6)}",
        # A label of its own, so that no other run removes it; not those of the healthy image.
        labels={LABEL: secrets.token_hex(6), "io.imagegen.recipe": "", "io.imagegen.matrix": ""},
        buildargs={"IMAGE": on},
    )
    return build(engine, request, lambda _: None)


@pytest.fixture(scope="module")
def answers(
    engine: Engine, cpu_family: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Answers]:
    """What `imagegen validate` says of every animal and of every healthy image."""
    broken: dict[str, str] = {}

    def validate(ref: str, code: int) -> Ended:
        run = command_line_in(tmp_path_factory.mktemp("zoo"))
        return run("validate", "--format", "json", ref, code=code)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        try:
            healthy = {cell: pool.submit(validate, cpu_family[cell], 0) for cell in CELLS}
            for animal in ANIMALS:
                on = cpu_family[expected(animal)["image"]]
                broken[animal] = broken_image(engine, animal, on)
            ill = {name: pool.submit(validate, ref, 7) for name, ref in broken.items()}
            yield {**healthy, **ill}
        finally:
            pool.shutdown(cancel_futures=True)
            for image_id in broken.values():
                images.remove(engine, image_id, force=True)


def outcomes(ended: Ended, outcome: str) -> list[str]:
    """Ids of the checks that came to an outcome."""
    (row,) = ended.result
    return [check["id"] for check in row["report"]["checks"] if check["outcome"] == outcome]


@pytest.mark.parametrize("cell", CELLS)
def test_a_healthy_image_passes(answers: Answers, cell: str) -> None:
    ended = answers[cell].result()
    assert outcomes(ended, "failed") == outcomes(ended, "error") == []
    passed = outcomes(ended, "passed")
    assert len(passed) > 30
    assert {"torch.version", "mpi.2rank", "ssh.login", "image.private-key-in-layer"} <= {*passed}
    assert ("hvd.size" in passed) == cell.startswith("debian12")
    assert ("rdma.provider" in passed) == cell.endswith("rdma-core")


@pytest.mark.parametrize("animal", ANIMALS)
def test_what_is_broken_is_named_and_nothing_else(answers: Answers, animal: str) -> None:
    ended = answers[animal].result()
    assert outcomes(ended, "failed") == expected(animal)["fails"]
    assert outcomes(ended, "error") == []
    (row,) = ended.result
    for check in row["report"]["checks"]:
        if check["outcome"] == "failed":
            assert check["measured"]
            assert check["cause"]
            assert check["remedy"]
    (problem,) = ended.documents[-1]["errors"]
    named = [line.partition(":")[0] for line in problem["evidence"] if not line.startswith(" ")]
    assert named == expected(animal)["fails"]


def test_the_zoo_has_what_breaks_in_the_field() -> None:
    assert len(ANIMALS) >= 7
    suites = {check.partition(".")[0] for animal in ANIMALS for check in expected(animal)["fails"]}
    assert suites >= {"hvd", "torch", "mpi", "image", "ssh", "rdma"}
