"""Test the names of cells that users give, and recipes of all matrices."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from imagegen.errors import ConfigError, NothingSelectedError
from imagegen.workflow.project import Project, select
from unit.conftest import REPOSITORY, SMALL

if TYPE_CHECKING:
    from imagegen.model.image import ImageSpec
    from unit.conftest import Overlay


@pytest.fixture
def specs(small: Overlay) -> tuple[ImageSpec, ...]:
    return Project(small.root).family("small").specs


def names(specs: list[ImageSpec]) -> list[str]:
    return [spec.cell.name for spec in specs]


@pytest.mark.parametrize(
    "pattern",
    ["debian12-core", "small/debian12-core", "imagegen/small:debian12-1.13.1-core", "*12-c*"],
)
def test_a_cell_is_named_by_name_id_image_or_glob(
    specs: tuple[ImageSpec, ...], pattern: str
) -> None:
    assert names(select(specs, [pattern])) == ["debian12-core"]


def test_selected_cells_keep_their_order_and_come_once(specs: tuple[ImageSpec, ...]) -> None:
    assert names(select(specs, ["debian13-*", "*-core"])) == [
        "debian12-core",
        "debian13-core",
        "debian13-none",
    ]
    assert names(select(specs, [])) == [spec.cell.name for spec in specs]


def test_a_pattern_that_matches_nothing_is_an_error_with_near_misses(
    specs: tuple[ImageSpec, ...],
) -> None:
    with pytest.raises(NothingSelectedError) as caught:
        select(specs, ["debian12-core", "debian12-cor"])
    (problem,) = caught.value.problems
    assert problem.text == "`debian12-cor` matches no cell"
    assert problem.hint.startswith("did you mean `debian12-core`")


def test_case_matters(specs: tuple[ImageSpec, ...]) -> None:
    with pytest.raises(NothingSelectedError):
        select(specs, ["Debian12-core"])


def test_one_cell_is_found_over_all_matrices(small: Overlay) -> None:
    small.matrix(SMALL.replace("small", "other"), "other")
    project = Project()
    assert project.cell("other/debian12-core")[1].tag == "imagegen/other:debian12-1.13.1-core"
    with pytest.raises(NothingSelectedError) as caught:
        project.cell("debian12-core")
    assert str(caught.value) == (
        "error: `debian12-core` means 2 cells\n"
        "  other/debian12-core\n"
        "  small/debian12-core\n"
        "\n"
        "hint: name one: `other/debian12-core`"
    )


def test_the_problems_of_all_matrices_are_told_together(small: Overlay) -> None:
    small.matrix(SMALL + "colour: red\n")
    small.matrix("", "other")
    with pytest.raises(ConfigError) as caught:
        Project().families()
    assert {problem.file for problem in caught.value.problems} == {
        "matrices/other.yaml",
        "matrices/small.yaml",
    }


def test_a_recipe_of_a_cell_is_that_of_its_family(small: Overlay) -> None:
    project = Project(small.root)
    family = project.family("small")
    assert [project.recipe_of(spec) for spec in family.specs] == project.recipes(family)


def test_measured_seconds_reach_the_planner(small: Overlay) -> None:
    small.component(
        "psi",
        "name: psi\ntitle: Psi\nseconds: 1\nsuites: [psi]\nreleases:\n"
        "  - {version: '1', origin: x, source: x}\n  - {version: '2', origin: x, source: x}\n",
    )
    text = SMALL.replace("[core, none]", "['44.0', none]").replace("debian12, debian13", "debian12")
    text = text.replace("  delta:", "  psi: ['1', '2']\n  delta:").replace("-{d", "-{psi}-{d")
    text = text.replace("{os: debian13}", "{psi: '2'}")
    small.matrix(text)
    fast = Project(small.root, {"psi": 0.5}).family("small").orders["debian12"]
    slow = Project(small.root, {"psi": 900.0}).family("small").orders["debian12"]
    assert fast.index("psi") > fast.index("beta")
    assert slow.index("psi") < slow.index("delta")


def test_an_overlay_replaces_one_template_of_the_shipped_ones(overlay: Overlay) -> None:
    only = overlay.root.parent / "mine"
    template = only / "dockerfiles/components/ssh/install.j2"
    template.parent.mkdir(parents=True)
    template.write_text("RUN my own way\n")
    project = Project(only)
    recipe = project.recipes(project.family("cpu"), ["debian12-none"])[0]
    assert "RUN my own way" in recipe.dockerfile
    assert "COPY ssh/" not in recipe.dockerfile


def test_a_project_loads_no_heavy_library_before_it_reads_a_file(small: Overlay) -> None:
    code = (
        "import sys\nfrom imagegen.workflow.project import Project\nProject()\n"
        "heavy = {'docker', 'jinja2', 'jsonschema', 'requests', 'rich', 'yaml'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    subprocess.run([sys.executable, "-c", code], cwd=small.root, env=environment, check=True)
