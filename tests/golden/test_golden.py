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
REGENERATE = "if the change is meant: make generated, and read the diff"
WHOLE = ("cpu", "cu113", "cu112", "cu101", "cu90", "lab")
"""Matrices of which every cell is kept: what builds anywhere, and the images of the documents. Of
the others some cells are."""


def kept_cells() -> list[str]:
    folders = (path.parent for path in KEPT.glob("*/*/Dockerfile"))
    return sorted(folder.relative_to(KEPT).as_posix() for folder in folders)


CELLS = kept_cells()

Recipes = dict[str, Recipe]


@pytest.fixture(scope="session")
def recipes() -> Recipes:
    """Of every shipped matrix, from a folder that has none of its own."""
    project = Project(overlay=KEPT.parents[1])
    families = [project.family(name) for name in matrix_names(project.payload)]
    found = [recipe for family in families for recipe in project.recipes(family)]
    return {recipe.spec.cell.id: recipe for recipe in found}


def kept_files(recipe: Recipe) -> dict[str, bytes]:
    data = {file.path: file.data for file in recipe.files}
    promise = data[f"{OWN_FOLDER}{EXPECTATION_PATH}"]
    return {"Dockerfile": recipe.dockerfile.encode(), "image.json": promise}


def keep(recipe: Recipe) -> None:
    for name, data in kept_files(recipe).items():
        path = KEPT / recipe.spec.cell.id / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def test_cells_of_every_matrix_are_kept_and_none_that_is_gone(
    recipes: Recipes, update: bool
) -> None:
    """A matrix of which no cell is kept yet gives its first one."""
    families: dict[str, list[str]] = {}
    for cell in recipes:
        families.setdefault(cell.partition("/")[0], []).append(cell)
    kept = {*CELLS}
    wanted = {cell for name in WHOLE for cell in families[name]}
    wanted |= {every[0] for every in families.values() if not kept & {*every}}
    if update:
        for cell in kept - set(recipes):
            shutil.rmtree(KEPT / cell)
        for cell in wanted - kept:
            keep(recipes[cell])
        kept = {*kept_cells()}
    assert wanted <= kept <= set(recipes), REGENERATE


@pytest.mark.parametrize("cell", CELLS)
def test_a_cell_renders_as_it_is_kept(cell: str, recipes: Recipes, update: bool) -> None:
    if update and cell in recipes:
        keep(recipes[cell])
    assert update or cell in recipes, f"the cell is gone; {REGENERATE}"
    for name, data in kept_files(recipes[cell]).items() if cell in recipes else ():
        path = KEPT / cell / name
        kept = path.read_text() if path.exists() else ""
        assert data.decode() == kept, f"{path.relative_to(KEPT)} differs; {REGENERATE}"


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
    dockerfiles = {cell: recipes[cell].dockerfile for cell in CELLS if cell in recipes}
    return hadolint(dockerfiles, tmp_path_factory.mktemp("hadolint"))


@pytest.mark.parametrize("cell", CELLS)
def test_a_dockerfile_passes_hadolint(cell: str, linted: dict[str, list[str]]) -> None:
    assert linted.get(cell, []) == []


def test_hadolint_is_really_asked(tmp_path: Path) -> None:
    said = hadolint({"bad": "FROM debian:12\nRUN apt-get install -y cmake\n"}, tmp_path)
    assert "2 DL3008" in said["bad"]
