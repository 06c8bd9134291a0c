"""Whole Dockerfiles and expectation files of the shipped matrices, as a reviewer reads them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from imagegen.matrix.reader import matrix_names
from imagegen.model.recipe import EXPECTATION_PATH, Recipe
from imagegen.renderer.dockerfile import OWN_FOLDER
from imagegen.workflow.project import Project

KEPT = Path(__file__).parent
REGENERATE = "if the change is meant: pytest tests/golden --update-golden, and read the diff"
WHOLE = ("cpu", "cu113", "cu112", "cu101", "cu90", "lab")
"""Matrices of which every cell is kept: what builds anywhere, and the images of the documents."""

CELLS = (
    "cpu/debian12-rdma-core",
    "cpu/debian12-none",
    "cpu/debian13-rdma-core",
    "cpu/debian13-none",
    "cu113/ubuntu20.04-5.4-3.1.0.0",
    "cu113/ubuntu20.04-none-1.3",
    "cu112/ubuntu18.04-1.3-3.1.1",
    "cu112/ubuntu18.04-none-3.1.1",
    "cu112/ubuntu18.04-1.3-none-0.21.3",
    "cu112/ubuntu18.04-none-none-0.21.3",
    "cu101/ubuntu18.04",
    "cu90/ubuntu16.04",
    "lab/ubuntu18.04",
    "cu118/ubuntu22.04-23.10",
    "cu124/ubuntu22.04-none",
    "cu126/ubuntu24.04-3.3.0",
    "cu128/ubuntu24.04-24.10",
    "debian-cu118/debian12-runtime",
    "debian-cu124/debian13-devel-2.22.3_debian",
    "debian-cu124/debian13-runtime-2.21.5_pypi",
)

Recipes = dict[str, Recipe]


@pytest.fixture(scope="session")
def recipes() -> Recipes:
    """Of every shipped matrix, from a folder that has none of its own."""
    project = Project(overlay=KEPT.parents[1])
    families = [project.family(name) for name in matrix_names(project.payload)]
    found = [recipe for family in families for recipe in project.recipes(family)]
    return {recipe.spec.cell.id: recipe for recipe in found}


@pytest.fixture(scope="session")
def update(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden", default=False))


def kept_files(recipe: Recipe) -> dict[str, bytes]:
    data = {file.path: file.data for file in recipe.files}
    promise = data[f"{OWN_FOLDER}{EXPECTATION_PATH}"]
    return {"Dockerfile": recipe.dockerfile.encode(), "image.json": promise}


@pytest.mark.parametrize("cell", CELLS)
def test_a_cell_renders_as_it_is_kept(cell: str, recipes: Recipes, update: bool) -> None:
    for name, data in kept_files(recipes[cell]).items():
        path = KEPT / cell / name
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        kept = path.read_text() if path.exists() else ""
        assert data.decode() == kept, f"{path.relative_to(KEPT)} differs; {REGENERATE}"


def test_every_cell_is_kept_and_none_that_is_gone(recipes: Recipes, update: bool) -> None:
    whole = {cell for cell in recipes if cell.partition("/")[0] in WHOLE}
    assert whole <= set(CELLS) <= set(recipes)
    kept = {path.parent.relative_to(KEPT).as_posix() for path in KEPT.glob("*/*/Dockerfile")}
    for cell in kept - set(CELLS) if update else ():
        shutil.rmtree(KEPT / cell)
    assert update or kept == set(CELLS), REGENERATE


def hadolint(dockerfiles: dict[str, str], folder: Path) -> dict[str, list[str]]:
    """What hadolint says of each, with no rule ignored but those that the text itself names."""
    for name, text in dockerfiles.items():
        path = folder / name / "Dockerfile"
        path.parent.mkdir(parents=True)
        path.write_text(text)
    program = Path(sys.executable).with_name("hadolint")
    files = [f"{name}/Dockerfile" for name in dockerfiles]
    command = [str(program), "--no-color", "--format", "json", *files]
    found = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert found.stderr == ""
    said: dict[str, list[str]] = {name: [] for name in dockerfiles}
    for one in json.loads(found.stdout):
        said[one["file"].removesuffix("/Dockerfile")].append(f"{one['line']} {one['code']}")
    return said


@pytest.fixture(scope="session")
def linted(recipes: Recipes, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """All at once: to start it takes longer than to read a Dockerfile."""
    dockerfiles = {cell: recipes[cell].dockerfile for cell in CELLS}
    return hadolint(dockerfiles, tmp_path_factory.mktemp("hadolint"))


@pytest.mark.parametrize("cell", CELLS)
def test_a_dockerfile_passes_hadolint(cell: str, linted: dict[str, list[str]]) -> None:
    assert linted[cell] == []


def test_hadolint_is_really_asked(tmp_path: Path) -> None:
    said = hadolint({"bad": "FROM debian:12\nRUN apt-get install -y cmake\n"}, tmp_path)
    assert "2 DL3008" in said["bad"]
