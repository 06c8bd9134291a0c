"""Test what the recipe of Horovod installs beside it, for each kind of Python and release."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from packaging.requirements import Requirement

from imagegen.request.answer import answer_to
from imagegen.request.arguments import parse
from imagegen.resolver.refusal import Refusal
from unit.conftest import REPOSITORY

if TYPE_CHECKING:
    from imagegen.workflow.project import Project

CONSTRAINTS = REPOSITORY / "dockerfiles/build-env/horovod-constraints.txt"
COMPANIONS = "--constraint /mnt/horovod-constraints.txt"


def stages(text: str, project: Project) -> tuple[str, str]:
    """Return the stage that compiles Horovod, and the one that takes it."""
    answer = answer_to(parse(text.split(), project.catalog), project.catalog)
    assert not isinstance(answer, Refusal), text
    dockerfile = project.recipe_of(answer).dockerfile
    built = dockerfile.split(" AS horovod-build\n")[1].split("\nFROM ")
    return built[0], built[1]


@pytest.mark.parametrize(
    ("request_", "brought"),
    [
        ("os=ubuntu18.04 device=cpu torch=1.5.0 horovod=0.19.4", "psutil pyyaml six"),
        ("os=ubuntu18.04 tensorflow=2.6.2 horovod=0.28.1", "psutil pyyaml dataclasses"),
        ("os=ubuntu20.04 tensorflow=2.9.3 horovod=0.28.1", "psutil pyyaml"),
    ],
)
def test_what_a_release_asks_for_at_its_python_is_installed(
    request_: str, brought: str, project: Project
) -> None:
    last = stages(request_, project)[1]
    assert f"cffi cloudpickle packaging {brought}\n" in last


def test_a_python_with_old_setuptools_has_it_before_the_build(project: Project) -> None:
    built, _ = stages("os=ubuntu18.04 device=cpu torch=1.5.0 horovod=0.19.4", project)
    assert built.index(COMPANIONS) < built.index("--no-build-isolation")
    assert COMPANIONS not in stages("os=ubuntu20.04 torch=1.8.1 horovod=0.22.1", project)[0]


def test_python_3_5_compiles_psutil_where_the_compiler_is(project: Project) -> None:
    built, last = stages("os=ubuntu16.04 python=3.5 mxnet=1.4.1 horovod=0.19.4", project)
    assert f"--root /out \\\n      {COMPANIONS} psutil" in built
    assert "psutil" not in last


def test_conda_has_a_setuptools_that_older_torch_knows(project: Project) -> None:
    built, last = stages("os=ubuntu20.04 python=3.9 torch=1.13.1 horovod=0.28.1", project)
    assert "'setuptools<70' wheel cffi" in built
    assert "setuptools" not in last


@pytest.mark.parametrize("minor", ["3.5", "3.6", "3.7", "3.8", "3.11", "3.14"])
def test_no_companion_is_pinned_twice_for_a_python(minor: str) -> None:
    lines = [Requirement(x) for x in CONSTRAINTS.read_text().splitlines() if not x.startswith("#")]
    names = [x.name for x in lines if not x.marker or x.marker.evaluate({"python_version": minor})]
    assert len(names) == len(set(names))
    assert "psutil" in names
    assert ("cffi" in names) == (minor not in ("3.6", "3.7"))


@pytest.mark.parametrize(
    ("version", "beside"),
    [
        ("1.14.0", {"protobuf<3.20", "gast<0.3", "h5py<3", 'grpcio<1.41;python_version<"3.6"'}),
        ("2.1.0", {"protobuf<3.20", "numpy<1.24", "h5py<3", 'grpcio<1.41;python_version<"3.6"'}),
        ("2.6.0", {"protobuf<3.20", "numpy<1.24", "keras<2.7", "tensorflow-estimator<2.7"}),
        ("2.6.2", {"protobuf<3.20", "numpy<1.24"}),
    ],
)
def test_tensorflow_has_the_bounds_that_its_wheel_does_not_name(
    version: str, beside: set[str], project: Project
) -> None:
    rows = project.catalog.components["tensorflow"].releases
    found = [set(str(x.facts["beside"]).split()) for x in rows if x.version == version]
    assert found
    assert all(one == beside for one in found)
