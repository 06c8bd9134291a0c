"""Test locks: what is written, what counts as drift, and how a lock fixes a build."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from imagegen.config.network import BuildEnv
from imagegen.engine.images.contents import ImageContents, Package, read_contents
from imagegen.errors import ConfigError
from imagegen.model.recipe import ContextFile, Part
from imagegen.sources.lock_file import (
    CellLock,
    Drift,
    Lock,
    SystemLock,
    as_text,
    drift_of_cells,
    drift_of_packages,
    drifted,
    exact,
    lock_entry,
    lock_path,
    owners_of,
    preferences,
    read_lock,
)
from imagegen.sources.locked_build import LockedBuild, locked_env, packages_of
from imagegen.sources.pip_index import (
    IndexFile,
    file_of,
    links_page,
    listed_files,
    project_of,
)
from imagegen.sources.wheels import WheelTarget
from imagegen.workflow.project import Project

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.model.recipe import Recipe
    from unit.conftest import Overlay

SHA, OTHER = "a" * 64, "b" * 64
SYSTEM = SystemLock(
    "sha256:base",
    {"libc6": ("2.36-9",), "beta": ("1:1.13.1+dfsg-4",), "nccl": ("2.21", "2.22")},
    {"pytest-8.3.5-py3-none-any.whl": SHA},
)


@pytest.fixture
def recipe(small: Overlay) -> Recipe:
    small.write("dockerfiles/build-env/env.sh", "true\n")
    project = Project()
    return project.recipes(project.family("small"))[0]


def lock_of(recipe: Recipe, **changes: object) -> Lock:
    cell = replace(lock_entry(recipe), **changes)  # type: ignore[arg-type]
    cells = {recipe.spec.cell.name: cell}
    return Lock("matrices/small.lock.yaml", "small", {recipe.spec.os.id: SYSTEM}, cells)


def test_a_lock_is_read_as_it_was_written(recipe: Recipe, tmp_path: Path) -> None:
    lock, path = lock_of(recipe), tmp_path / "small.lock.yaml"
    path.write_text(as_text(lock))
    again = read_lock(path)
    assert replace(again, file=lock.file) == lock
    assert as_text(again) == as_text(lock)


def test_the_same_lock_is_the_same_text_whatever_the_order() -> None:
    apt, cell = {"b": ("2",), "a": ("1",)}, CellLock("debian12", {}, {})
    one = Lock("", "m", {"debian12": SystemLock("x", apt, {})}, {"n": cell})
    turned = SystemLock("x", dict(reversed(apt.items())), {})
    assert as_text(one) == as_text(replace(one, systems={"debian12": turned}))
    assert turned.digest == one.systems["debian12"].digest


def test_a_lock_lies_beside_its_matrix() -> None:
    assert str(lock_path("matrices/cpu.yaml")) == "matrices/cpu.lock.yaml"


def test_a_lock_that_is_not_there_or_not_whole_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no lock") as caught:
        read_lock(tmp_path / "none.lock.yaml")
    assert "`imagegen lock`" in caught.value.problems[0].hint
    path = tmp_path / "half.lock.yaml"
    path.write_text("matrix: small\nsystems: {debian12: {base: x, apt: {}, wheels: {a: short}}}\n")
    with pytest.raises(ConfigError) as caught:
        read_lock(path)
    assert [(problem.key, problem.text) for problem in caught.value.problems] == [
        ("", "key `cells` is missing"),
        ("systems.debian12.wheels.a", "the value is not 64 hexadecimal digits in small letters"),
    ]


def test_a_cell_that_asks_for_the_same_has_not_drifted(recipe: Recipe) -> None:
    assert drift_of_cells(lock_of(recipe), [recipe]) == []


def test_other_releases_and_parts_are_drift(recipe: Recipe) -> None:
    part = Part("light", "3.1", OTHER, "", "a row")
    asked = replace(recipe, parts=(part,))
    lock = lock_of(asked, releases={"alpha": "3.10", "beta": "1.13.1"}, parts={"light 3.1": SHA})
    name = recipe.spec.cell.name
    found = drift_of_cells(lock, [asked])
    assert Drift(name, "alpha", "3.10", "3.11") in found
    assert Drift(name, "light 3.1", SHA, OTHER) in found
    assert Drift(name, "beta", "1.13.1", "1.13.1") not in found


def test_a_cell_that_was_never_locked_is_drift(recipe: Recipe) -> None:
    found = drift_of_cells(replace(lock_of(recipe), cells={}), [recipe])
    assert [(one.component, one.name) for one in found] == [("debian12-core", "the whole cell")]


def test_a_version_that_the_archive_has_no_more_is_drift_unless_the_base_brings_it() -> None:
    listed = {"libc6": ["2.36-10"], "beta": ["1:1.13.1+dfsg-4", "1:1.12"]}
    owners = {"beta": "beta"}
    assert drift_of_packages(SYSTEM, listed, {}, owners) == [
        Drift("dependency", "libc6", "2.36-9", "2.36-10")
    ]
    assert drift_of_packages(SYSTEM, listed, {"libc6": "2.36-9"}, owners) == []


def test_drift_is_told_as_a_table_with_what_to_do(recipe: Recipe) -> None:
    found = [Drift("torch", "python3-torch", "1.13.1-4", "1.13.1-5"), Drift("os", "base", "x", "y")]
    (problem,) = drifted(lock_of(recipe), found).problems
    assert str(problem).splitlines() == [
        "error: matrices/small.lock.yaml: 2 things drifted",
        "  component  what           locked    found",
        "  torch      python3-torch  1.13.1-4  1.13.1-5",
        "  os         base           x         y",
        "",
        (
            "hint: to take what is there now: `imagegen build --force -m small`, then `imagegen "
            "lock -m small`"
        ),
    ]


def test_patterns_become_the_locked_versions_and_nothing_else_changes() -> None:
    dockerfile = "RUN apt-get install 'beta=1.13.1+dfsg-*' 'gamma=1.*' 'libc6=2.36-9'\n  'x==1.*'"
    assert exact(dockerfile, SYSTEM.apt) == (
        "RUN apt-get install 'beta=1:1.13.1+dfsg-4' 'gamma=1.*' 'libc6=2.36-9'\n  'x==1.*'"
    )
    assert exact("'nccl=2.21*'", SYSTEM.apt) == "'nccl=2.21'"


def test_a_step_with_an_index_of_its_own_gets_the_locked_files_too() -> None:
    steps = (
        "RUN PIP_CONFIG_FILE=/dev/null python3 -m pip install --index-url https://t.example/cu x",
        "RUN python3 -m pip install --no-index --find-links https://t.example/stable.html x",
    )
    assert [exact(step, {}) for step in steps] == [
        "RUN python3 -m pip install --index-url https://t.example/cu x",
        "RUN python3 -m pip install --no-index --find-links /mnt/links.html x",
    ]


def test_a_locked_recipe_is_the_same_cell(recipe: Recipe) -> None:
    held = LockedBuild(lock_of(recipe))
    asks = replace(recipe, dockerfile="RUN apt-get install 'libc6=2.*'\n")
    assert held.recipe(asks).dockerfile == "RUN apt-get install 'libc6=2.36-9'\n"
    assert held.recipe(asks).digest == recipe.digest
    assert held.digest(recipe.spec.os.id) == SYSTEM.digest


def test_apt_may_take_the_locked_versions_and_nothing_else() -> None:
    text = preferences(SYSTEM.apt)
    assert text.startswith("Package: *\nPin: release *\nPin-Priority: -1\n\n")
    assert "Package: libc6\nPin: version 2.36-9\nPin-Priority: 1001\n" in text
    assert text.count("Package: nccl\n") == 2


def test_a_locked_environment_shows_pip_the_locked_files_alone() -> None:
    env = BuildEnv(
        (
            ContextFile("build-env/ca.crt", b"CERTIFICATE"),
            ContextFile("build-env/apt.conf", b'Acquire::https::CaInfo "/mnt/ca.crt";\n'),
            ContextFile("build-env/pip.conf", b"[global]\nindex-url = https://x.example/simple\n"),
            ContextFile("build-env/uv.toml", b'index-url = "https://x.example/simple"\n'),
        )
    )
    file = IndexFile("pytest-8.3.5-py3-none-any.whl", "https://x.example/p?a=1&b", SHA, "")
    locked = locked_env(env, SYSTEM, [file])
    held = {one.path: one.data.decode() for one in locked.files}
    assert locked.buildargs == (("SOURCE_DATE_EPOCH", "0"),)
    assert held["build-env/ca.crt"] == "CERTIFICATE"
    assert "build-env/uv.toml" not in held
    assert held["build-env/apt.conf"] == (
        'Acquire::https::CaInfo "/mnt/ca.crt";\nDir::Etc::Preferences "/mnt/preferences";\n'
    )
    assert held["build-env/pip.conf"] == (
        "[global]\nno-index = true\nfind-links = /mnt/links.html\n"
    )
    assert f'href="https://x.example/p?a=1&amp;b#sha256={SHA}"' in held["build-env/links.html"]
    assert held["build-env/preferences"] == preferences(SYSTEM.apt)


SITE = "/usr/lib/python3/dist-packages"
LOOKED = f"""\
deb ii  libc6 2.36-9 amd64 glibc 2.36-9
deb rc  gone 1.0 amd64 gone 1.0
deb ii  python3 3.11.2-1 amd64 python3-defaults 3.11.2-1
{SITE}/pytest-8.3.5.dist-info/INSTALLER:pip
{SITE}/numpy-1.24.2.dist-info/INSTALLER:debian
{SITE}/nvidia_nccl_cu12-2.21.5.dist-info/INSTALLER:pip
{SITE}/pytest-8.3.5.dist-info/WHEEL:Tag: py3-none-any
{SITE}/nvidia_nccl_cu12-2.21.5.dist-info/WHEEL:Tag: py3-none-manylinux2014_x86_64
"""


def dist(name: str, version: str, tag: str, path: str = "") -> Package:
    return Package("pypi", name, version, path=path, tags=(tag,))


def test_an_image_says_what_dpkg_and_pip_brought() -> None:
    found = read_contents(LOOKED.splitlines())
    nccl, pytest_ = "nvidia_nccl_cu12-2.21.5", "pytest-8.3.5"
    linux = "py3-none-manylinux2014_x86_64"
    assert found.debs == {"libc6": "2.36-9", "python3": "3.11.2-1"}
    assert found.of_kind("pypi") == (
        dist("nvidia_nccl_cu12", "2.21.5", linux, f"{SITE}/{nccl}.dist-info"),
        dist("pytest", "8.3.5", "py3-none-any", f"{SITE}/{pytest_}.dist-info"),
    )


def test_versions_of_all_stages_are_kept() -> None:
    image = ImageContents((Package("deb", "libc6", "3"),))
    stage = ImageContents((Package("deb", "g++", "12"), Package("deb", "libc6", "2")))
    assert packages_of([stage, image]) == {"g++": ("12",), "libc6": ("2", "3")}


TOLD = f"""\
  Found link https://i.example/a/torch-2.6.0-cp313-cp313-manylinux1_x86_64.whl#sha256={SHA} (from https://i.example/simple/torch/) (requires-python:>=3.9.0), version: 2.6.0
  Skipping link: none of the wheel's tags (cp312-cp312-manylinux1_x86_64) are compatible: https://i.example/b/torch-2.6.0-cp312-cp312-manylinux1_x86_64.whl#sha256={OTHER} (from https://i.example/simple/torch/) (requires-python:>=3.9.0)
  Found link https://i.example/c/torch-2.6.0%2Bcpu-cp313-cp313-linux_x86_64.whl (from https://i.example/cpu/)
  Found link https://i.example/d/horovod-0.28.1.tar.gz#sha256={OTHER} (from https://i.example/simple/horovod/), version: 0.28.1
"""  # noqa: E501
TARGET = WheelTarget("3.13.5", "2.41", compiled=True)


def test_pip_tells_files_with_their_sha256() -> None:
    files = listed_files("torch", TOLD.splitlines())
    assert [(file.name.split("-", 1)[1][:5], file.sha256) for file in files] == [
        ("2.6.0", SHA),
        ("2.6.0", OTHER),
        ("2.6.0", ""),
    ]
    assert files[2].name == "torch-2.6.0+cpu-cp313-cp313-linux_x86_64.whl"
    assert (files[0].url.rpartition("/")[0], files[0].requires_python) == (
        "https://i.example/a",
        ">=3.9.0",
    )


@pytest.mark.parametrize(
    ("installed", "place"),
    [
        (dist("torch", "2.6.0", "cp313-cp313-manylinux1_x86_64"), "a"),
        (dist("torch", "2.6.0", "cp313-cp313-linux_x86_64"), "a"),
        (dist("torch", "2.6.0", "cp312-cp312-manylinux1_x86_64"), "b"),
        (dist("torch", "2.6.0+cpu", "cp313-cp313-linux_x86_64"), "c"),
        (dist("horovod", "0.28.1", "cp313-cp313-linux_x86_64"), "d"),
    ],
)
def test_the_file_of_a_distribution_is_found_by_version_and_tags(
    installed: Package, place: str
) -> None:
    found = file_of(installed, listed_files(installed.name, TOLD.splitlines()), TARGET)
    assert found is not None
    assert found.url.startswith(f"https://i.example/{place}/")


def test_a_distribution_that_no_index_has_is_not_found() -> None:
    lost = Package("pypi", "torch", "2.7.0")
    assert file_of(lost, listed_files("torch", TOLD.splitlines()), TARGET) is None


@pytest.mark.parametrize(
    ("file", "project"),
    [
        ("nvidia_nccl_cu12-2.21.5-py3-none-any.whl", "nvidia-nccl-cu12"),
        ("typing_extensions-4.12.2-py3-none-any.whl", "typing-extensions"),
        ("horovod-0.28.1.tar.gz", "horovod"),
        ("backports.zoneinfo-0.2.1.tar.gz", "backports-zoneinfo"),
    ],
)
def test_a_file_names_its_project(file: str, project: str) -> None:
    assert project_of(file) == project


def test_owners_are_the_components_whose_rows_name_a_package(recipe: Recipe) -> None:
    alpha, *others = recipe.spec.pins
    row = replace(alpha.release, apt={"a": "1"}, build_apt={"b": "1"}, wheels={"c": "1"})
    spec = replace(recipe.spec, pins=(replace(alpha, release=row), *others))
    assert owners_of([spec]) == dict.fromkeys(("a", "b", "c"), alpha.component)


def test_a_page_of_links_is_the_same_in_any_order() -> None:
    files = listed_files("torch", TOLD.splitlines())
    assert links_page(files) == links_page(files[::-1])
