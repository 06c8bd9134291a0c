"""Test what an image is built on: its OS, or the base image of a toolkit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imagegen.model.image import base_of

if TYPE_CHECKING:
    from imagegen.workflow.project import Project


def test_a_toolkit_that_is_had_as_a_base_image_is_what_the_cell_stands_on(project: Project) -> None:
    (recipe,) = project.recipes(project.family("cu90"))
    base = base_of(recipe.spec)
    assert base.image == "nvidia/cuda:9.0-devel-ubuntu16.04"
    assert (base.id, base.bootstrap) == ("cuda-9.0-devel-ubuntu16.04", False)
    assert recipe.dockerfile.splitlines()[1] == f"ARG BASE={base.image}"


def test_a_toolkit_of_the_archive_leaves_the_base_of_the_os(project: Project) -> None:
    family = project.family("debian-cu118")
    (recipe,) = project.recipes(family)
    assert base_of(recipe.spec) is recipe.spec.os
    assert recipe.dockerfile.splitlines()[1] == "ARG BASE=debian:bookworm-slim"


def test_what_is_done_to_a_base_comes_before_everything_else(project: Project) -> None:
    (recipe,) = project.recipes(project.family("debian-cu118"))
    base = recipe.dockerfile.partition(" AS openmpi")[0]
    assert "contrib non-free" in base
    assert recipe.origins[0].stage == "base"
    assert recipe.origins[0].template == "dockerfiles/components/cuda/base.j2"
