"""Test parts of builds: what a Dockerfile mounts, and all problems before any build."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from imagegen.errors import BuildError, ConfigError, RenderError
from imagegen.model.recipe import Part
from imagegen.sources.artifacts import Artifacts, read_artifacts
from imagegen.sources.parts import with_parts
from imagegen.sources.supply import Store, supply
from imagegen.workflow.project import Project

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.model.recipe import Recipe
    from unit.conftest import Overlay

WHEEL, TARBALL = b"a vendor's wheel", b"a tarball"
VENDOR = """\
name: vendor
title: a vendor's wheel
seconds: 1
suites: [vendor]
installs: [artifact]
releases:
  - {version: "3.1", artifact: light, origin: the vendor, source: the test}
"""
SOURCE = """\
name: source
title: compiled from a tarball
seconds: 1
suites: [source]
installs: [tarball]
releases:
  - version: "4.0"
    tarball: {url: "URL", sha256: "SHA"}
    origin: its site
    source: the test
"""
MOUNT = "RUN --mount=type=bind,source=artifacts/{},target=/srv install\n"
MATRIX = """\
name: parts
tag: "x/y:{os}"
axes: {os: [debian12]}
components: {vendor: any, source: any}
"""


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def listing(sha256: str, place: str = "path: light-3.1.whl") -> str:
    return (
        "artifacts:\n"
        "  - {name: light, version: '3.1', file: light-3.1-py3-none-any.whl, "
        f"{place}, sha256: {sha256}, licence: ask the vendor}}\n"
    )


@pytest.fixture
def site(small: Overlay, tmp_path: Path) -> Overlay:
    """Make a matrix with a vendor's wheel and a tarball, with both files in their places."""
    (tmp_path / "source-4.0.tgz").write_bytes(TARBALL)
    url = (tmp_path / "source-4.0.tgz").as_uri()
    small.component("vendor", VENDOR)
    small.component("source", SOURCE.replace("URL", url).replace("SHA", sha(TARBALL)))
    small.template("vendor", MOUNT.format("light/{{ release.version }}"))
    small.template("source", "COPY --from=source-build /out /\n")
    small.template("source", MOUNT.format("source/{{ release.version }}"), "build")
    small.write("dockerfiles/build-env/env.sh", "true\n")
    small.matrix(MATRIX, "parts")
    small.write("artifacts.yaml", listing(sha(WHEEL)))
    small.write("light-3.1.whl", WHEEL)
    return small


def recipe() -> Recipe:
    project = Project()
    return project.recipes(project.family("parts"))[0]


def store(site: Overlay, **options: bool) -> Store:
    return Store(read_artifacts(site.payload), {}, site.root / "cache", None, **options)


def test_a_recipe_names_the_parts_that_its_dockerfile_mounts(site: Overlay) -> None:
    del site
    light, source = recipe().parts
    assert (str(light), light.sha256, light.url) == ("light 3.1", sha(WHEEL), "")
    assert (str(source), source.sha256) == ("source 4.0", sha(TARBALL))
    assert light.row.startswith("vendor 3.1 (dockerfiles/components/vendor/component.yaml:")


def test_another_part_is_another_recipe_with_the_same_dockerfile(site: Overlay) -> None:
    before = recipe()
    site.write("artifacts.yaml", listing(sha(b"another wheel")))
    after = recipe()
    assert after.dockerfile == before.dockerfile
    assert after.digest != before.digest


def test_a_recipe_renders_before_anything_is_listed(site: Overlay) -> None:
    before = recipe()
    (site.root / "artifacts.yaml").unlink()
    assert recipe().dockerfile == before.dockerfile
    assert recipe().parts[0].sha256 == ""


def test_a_row_that_is_not_mounted_needs_no_part(site: Overlay) -> None:
    site.template("vendor", "RUN install from elsewhere\n")
    assert [part.name for part in recipe().parts] == ["source"]


def test_a_mount_that_no_row_names_is_a_mistake_of_the_template(site: Overlay) -> None:
    site.template("vendor", MOUNT.format("heavy/3.1"))
    with pytest.raises(RenderError, match=r"mounts `artifacts/heavy/3\.1`, which no release"):
        recipe()


def test_what_mounts_nothing_stays_as_it_is(site: Overlay) -> None:
    plain = replace(recipe(), dockerfile="FROM x\n", parts=())
    assert with_parts(plain, read_artifacts(site.payload)) is plain


def test_every_part_comes_under_its_listed_name(site: Overlay) -> None:
    found = {file.path: file for file in supply(recipe().parts, store(site)).values()}
    assert {path: file.source.read_bytes() for path, file in found.items()} == {
        "artifacts/light/3.1/light-3.1-py3-none-any.whl": WHEEL,
        "artifacts/source/4.0/source-4.0.tgz": TARBALL,
    }
    assert found["artifacts/source/4.0/source-4.0.tgz"].sha256 == sha(TARBALL)


def test_every_problem_is_told_at_once_with_the_file_to_put_where(site: Overlay) -> None:
    site.write("light-3.1.whl", b"another wheel")
    source = replace(recipe().parts[1], sha256="unverified")
    unlisted = Part("harp", "1.3", "", "", "harp 1.3 (harp.yaml:9)", "debian12")
    with pytest.raises(ConfigError) as caught:
        supply([recipe().parts[0], source, unlisted], store(site))
    wrong, loose, missing = caught.value.problems
    assert "is another file than the one that is listed" in wrong.text
    assert wrong.hint.startswith(f"put light-3.1-py3-none-any.whl with sha256 {sha(WHEEL)} at ")
    assert "`--allow-unverified`" in loose.hint
    assert missing.text == "the vendor part `harp` 1.3 for debian12 is not listed"
    assert missing.evidence[0] == "needed by harp 1.3 (harp.yaml:9)"


def test_downloads_that_fail_are_all_told(site: Overlay, tmp_path: Path) -> None:
    gone = [
        Part(name, "1", sha(TARBALL), (tmp_path / name).as_uri(), f"{name} 1")
        for name in ("this.tgz", "that.tgz")
    ]
    with pytest.raises(BuildError) as caught:
        supply(gone, store(site))
    assert [problem.text.split("/")[-1] for problem in caught.value.problems] == [
        "this.tgz` cannot be downloaded",
        "that.tgz` cannot be downloaded",
    ]


def test_mirrors_are_asked_instead(site: Overlay, tmp_path: Path) -> None:
    part = replace(recipe().parts[1], url="https://vendor.example/files/source-4.0.tgz")
    mirrored = Store(
        Artifacts(), {"https://vendor.example/files/": f"{tmp_path.as_uri()}/"}, site.root / "c"
    )
    assert supply([part], mirrored)[part].source.read_bytes() == TARBALL


def test_a_tarball_that_nothing_vouches_for_is_measured(site: Overlay) -> None:
    loose = replace(recipe().parts[1], sha256="unverified")
    assert supply([loose], store(site, allow_unverified=True))[loose].sha256 == sha(TARBALL)
