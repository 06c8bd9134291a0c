"""Test the CUDA matrices that need only archives: shared layers and image texts of their cells."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from imagegen.model.cell import Want
from imagegen.resolver.propagation import domains_of
from imagegen.resolver.resolve import space_of
from imagegen.resolver.search import search
from imagegen.resolver.warnings import warnings

if TYPE_CHECKING:
    from imagegen.model.recipe import Recipe
    from imagegen.workflow.project import Project


def recipes(project: Project, name: str) -> dict[str, Recipe]:
    return {recipe.spec.cell.name: recipe for recipe in project.recipes(project.family(name))}


def promised(recipe: Recipe, component: str) -> dict[str, Any]:
    (document,) = [file for file in recipe.files if file.path == "image/etc/imagegen/image.json"]
    found: dict[str, Any] = json.loads(document.data)["components"][component]
    return found


def until(recipe: Recipe, stage: str) -> str:
    """Return a Dockerfile before a stage, without its first line, which names the image."""
    return recipe.dockerfile.partition(f" AS {stage}\n")[0].partition("\n")[2]


def test_flavours_share_the_large_layer_of_torch(project: Project) -> None:
    found = recipes(project, "debian-cu124")
    assert len({until(recipe, "cuda") for recipe in found.values()}) == 1
    assert "AS torch\n" in until(found["debian13-devel-2.22.3_debian"], "cuda")
    assert len({until(recipe, "nccl") for recipe in found.values()}) == 2


@pytest.mark.parametrize("flavour", ["devel", "runtime"])
def test_the_flavour_that_was_chosen_is_promised(project: Project, flavour: str) -> None:
    recipe = recipes(project, "debian-cu124")[f"debian13-{flavour}-2.22.3_debian"]
    assert promised(recipe, "cuda")["facts"]["flavour"] == flavour
    packages = {"nvidia-cuda-toolkit=", "libnccl-dev="}
    there = {name for name in packages if f"'{name}" in recipe.dockerfile}
    assert there == (packages if flavour == "devel" else set())


def test_no_driver_comes_with_the_compiler(project: Project) -> None:
    dockerfile = recipes(project, "debian-cu124")["debian13-devel-2.22.3_debian"].dockerfile
    stand_in, toolkit = "Provides: libcuda-12.4-1", "'nvidia-cuda-toolkit="
    assert dockerfile.index(stand_in) < dockerfile.index(toolkit)


def test_horovod_is_compiled_with_nvcc_that_the_image_does_not_keep(project: Project) -> None:
    dockerfile = recipes(project, "debian-cu118")["debian12-runtime"].dockerfile
    stage = dockerfile.partition(" AS horovod-build\n")[2].partition("\nFROM ")[0]
    for text in (
        "'nvidia-cuda-toolkit=",
        "CC=gcc-11 CXX=g++-11",
        "HOROVOD_GPU_OPERATIONS=NCCL HOROVOD_NCCL_LINK=SHARED",
        "HOROVOD_CUDA_HOME=/usr",
        "HOROVOD_NCCL_HOME=/opt/nccl",
    ):
        assert text in stage
        assert text not in dockerfile.replace(stage, "")


def test_both_cudas_and_both_nccls_are_told(project: Project) -> None:
    (old,) = project.family("debian-cu118").specs
    assert any("brings cuda 11.7 of its own, the image has 11.8.0" in w for w in old.warnings)
    for spec in project.family("debian-cu124").specs:
        two = any("2.21.5 in torch" in warning for warning in spec.warnings)
        assert two == (spec.cell.values["nccl"] == "2.22.3 debian")


def test_a_wheel_in_the_place_of_torchs_own_is_no_second_nccl(project: Project) -> None:
    wishes = {"os": "debian13", "torch": "2.6.0 pypi", "nccl": "2.20.5 pypi"}
    wants = [Want(name, wish, "the test") for name, wish in wishes.items()]
    space = space_of(project.catalog, wants)
    found = search(domains_of(space, wants))
    assert found is not None
    told = warnings(found, space, allow_unknown=False)
    assert not [text for text in told if "two NCCLs" in text]
    assert [text for text in told if text.endswith("(rule pins-of-torch)") and "2.20.5" in text]
