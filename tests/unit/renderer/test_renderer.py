"""Test that an ImageSpec and a layer order become a recipe: same inputs, same bytes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import orjson
import pytest

from imagegen.catalog.reader import read_catalog
from imagegen.config.payload import Payload
from imagegen.errors import ConfigError, RenderError
from imagegen.model.recipe import ContextFile, StepOrigin
from imagegen.renderer import context_files
from imagegen.renderer.context_files import ContextFiles
from imagegen.workflow.project import Project
from unit.conftest import REPOSITORY, SMALL

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.model.recipe import Recipe
    from unit.conftest import Overlay


def recipes(small: Overlay) -> dict[str, Recipe]:
    project = Project(small.root)
    found = project.recipes(project.family("small"))
    return {recipe.spec.cell.name: recipe for recipe in found}


def digests(found: dict[str, Recipe]) -> dict[str, str]:
    return {name: recipe.digest for name, recipe in found.items()}


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_stages_are_a_chain_in_the_order_of_the_layers(small: Overlay) -> None:
    recipe = recipes(small)["debian12-core"]
    assert re.findall(r"^FROM .*", recipe.dockerfile, re.MULTILINE) == [
        "FROM ${BASE} AS base",
        "FROM base AS alpha",
        "FROM alpha AS beta",
        "FROM beta AS gamma",
        "FROM gamma AS delta",
        "FROM delta AS image",
    ]
    assert "ENV ALPHA=1 \\\n    PATH=/opt/alpha/bin:/usr/local/sbin" in recipe.dockerfile


def test_an_image_for_a_user_ends_with_the_account_and_what_components_do_for_it(
    small: Overlay,
) -> None:
    shipped = REPOSITORY / "dockerfiles/Dockerfile.j2"
    small.write("dockerfiles/Dockerfile.j2", shipped.read_text())
    small.template(
        "beta", "RUN own {{ image.cell.user.home }} {{ release.version }}\n", kind="user"
    )
    matrix = small.root / "matrices/small.yaml"
    before = recipes(small)["debian12-core"]
    matrix.write_text(matrix.read_text() + "user: {name: mpiuser, uid: 1234}\n")
    recipe = recipes(small)["debian12-core"]
    end = recipe.dockerfile.partition("AS image\n")[2]
    places = [
        end.index(text)
        for text in (
            "useradd --no-log-init --uid 1234 --user-group --create-home",
            "RUN own /home/mpiuser ",
            "\nWORKDIR /home/mpiuser\nUSER 1234\n",
        )
    ]
    assert places == sorted(places)
    document = orjson.loads(own_file(recipe, "image.json"))
    assert document["user"] == {"home": "/home/mpiuser", "name": "mpiuser", "uid": 1234}
    assert document["contract"]["user"] == recipe.contract["user"] == 1234
    # What is below is shared with images for root, which name no user.
    assert (
        before.dockerfile.partition("AS image\n")[0] == recipe.dockerfile.partition("AS image\n")[0]
    )
    assert "user" not in orjson.loads(own_file(before, "image.json"))
    assert "user" not in before.contract
    assert "USER" not in before.dockerfile
    assert "own" not in before.dockerfile.partition("AS image\n")[2]


def own_file(recipe: Recipe, name: str) -> bytes:
    return next(file.data for file in recipe.files if file.path.endswith(f"/{name}"))


def test_a_build_stage_stands_on_the_last_thing_that_it_needs(small: Overlay) -> None:
    small.template("gamma", "RUN compile\n", kind="build")
    small.template("gamma", "COPY --from=gamma-build /out /\n")
    small.template("delta", "RUN compile delta\n", kind="build")
    dockerfile = recipes(small)["debian12-core"].dockerfile
    assert "FROM beta AS gamma-build\nRUN compile\n\nFROM beta AS gamma\nCOPY --from" in dockerfile
    assert "FROM base AS delta-build\n" in dockerfile


def test_cells_that_differ_late_share_every_earlier_line(small: Overlay) -> None:
    found = recipes(small)
    with_delta, without = (found[f"debian12-{name}"].dockerfile for name in ("core", "none"))
    shared = without[: without.index("FROM gamma AS image")]
    assert with_delta.split("\n", 1)[1].startswith(shared.split("\n", 1)[1].rstrip())


def test_rendering_twice_gives_the_same_recipe(small: Overlay) -> None:
    assert recipes(small) == recipes(small)


def test_the_current_directory_does_not_matter(
    small: Overlay, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    here = digests(recipes(small))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert digests(recipes(small)) == here


def test_the_environment_does_not_matter(small: Overlay, monkeypatch: pytest.MonkeyPatch) -> None:
    before = digests(recipes(small))
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    monkeypatch.setenv("LC_ALL", "tr_TR.UTF-8")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    monkeypatch.setenv("PIP_CERT", "/nowhere")
    assert digests(recipes(small)) == before


@pytest.mark.parametrize("seed", ["0", "4711"])
def test_the_order_of_hashes_does_not_matter(project: Project, tmp_path: Path, seed: str) -> None:
    expected = [recipe.digest for recipe in project.recipes(project.family("cpu"))]
    code = (
        "from imagegen.workflow.project import Project\n"
        "project = Project()\n"
        "for recipe in project.recipes(project.family('cpu')): print(recipe.digest)\n"
    )
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(REPOSITORY)}
    found = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    assert found.stdout.split() == expected


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("dockerfiles/Dockerfile.j2", "bash", "sh"),
        ("dockerfiles/components/beta/install.j2", "RUN install", "RUN setup"),
        ("dockerfiles/components/beta/component.yaml", "1.13.1", "1.13.2"),
        ("dockerfiles/components/beta/component.yaml", "beta's archive", "a mirror"),
        ("dockerfiles/components/alpha/component.yaml", 'ALPHA: "1"', 'ALPHA: "2"'),
        ("dockerfiles/os/debian12.yaml", "glibc: ", 'glibc: "2.1" #'),
    ],
)
def test_the_digest_changes_with_a_template_a_release_row_or_an_os(
    small: Overlay, file: str, old: str, new: str
) -> None:
    before = recipes(small)["debian12-core"].digest
    edit(small.root / file, old, new)
    assert recipes(small)["debian12-core"].digest != before


def test_the_digest_changes_with_a_file_that_is_copied(small: Overlay) -> None:
    file = small.write("dockerfiles/components/delta/files/delta.conf", "one\n")
    before = digests(recipes(small))
    file.write_text("two\n")
    after = digests(recipes(small))
    assert after["debian12-core"] != before["debian12-core"]
    assert after["debian12-none"] == before["debian12-none"]


def test_the_digest_changes_with_a_mode_a_name_or_a_byte() -> None:
    def digest(*files: ContextFile) -> str:
        return context_files.digest("FROM x\n", map(context_files.digested, files))

    found = [
        digest(ContextFile("a", b"b")),
        digest(ContextFile("a", b"b", 0o755)),
        digest(ContextFile("b", b"b")),
        digest(ContextFile("a", b"c")),
        digest(ContextFile("a", b""), ContextFile("b", b"")),
        digest(),
    ]
    assert len(set(found)) == len(found)


def test_a_comment_in_a_matrix_changes_no_image(small: Overlay) -> None:
    before = digests(recipes(small))
    edit(small.root / "matrices/small.yaml", "axes:", "# a comment\naxes:")
    edit(small.root / "dockerfiles/components/beta/component.yaml", "releases:", "\nreleases:")
    assert digests(recipes(small)) == before


def test_the_context_has_what_the_components_copy(small: Overlay) -> None:
    small.write("dockerfiles/components/beta/files/etc/beta.conf", "x\n")
    small.write("dockerfiles/build-env/env.sh", "true\n")
    recipe = recipes(small)["debian12-core"]
    assert [file.path for file in recipe.files] == [
        "beta/etc/beta.conf",
        "build-env/env.sh",
        "image/etc/environment",
        "image/etc/imagegen/image.json",
    ]


def test_a_row_with_nothing_to_compile_has_no_build_stage(small: Overlay) -> None:
    small.template("beta", "{% if release.tarball %}\nRUN compile\n{% endif %}\n", kind="build")
    assert "beta-build" not in recipes(small)["debian12-core"].dockerfile


def test_an_os_that_has_no_apt_is_an_error_in_words(small: Overlay) -> None:
    edit(small.root / "dockerfiles/os/debian12.yaml", "family: debian", "family: rhel")
    with pytest.raises(RenderError, match="on debian12 yet: all of them use apt"):
        recipes(small)


def test_what_a_matrix_sets_is_in_the_image_and_in_its_promise(small: Overlay) -> None:
    small.matrix(SMALL + "env: {NCCL_VERSION: 2.3.7-1+cuda9.0, A_FLAG: x}\n")
    recipe = recipes(small)["debian12-core"]
    files = {file.path: file.data.decode() for file in recipe.files}
    assert recipe.spec.cell.env == {"A_FLAG": "x", "NCCL_VERSION": "2.3.7-1+cuda9.0"}
    assert 'NCCL_VERSION="2.3.7-1+cuda9.0"\n' in files["image/etc/environment"]
    assert '"NCCL_VERSION": "2.3.7-1+cuda9.0"' in files["image/etc/imagegen/image.json"]


def test_a_matrix_may_not_set_the_path(small: Overlay) -> None:
    small.matrix(SMALL + "env: {PATH: /mine}\n")
    with pytest.raises(ConfigError, match=r"`env\.PATH`: this key"):
        recipes(small)


def test_marks_of_template_lines_never_leak(project: Project) -> None:
    for recipe in project.recipes(project.family("cpu")):
        texts = [recipe.dockerfile, *(file.path for file in recipe.files)]
        assert not any("\x01" in text or "\x02" in text for text in texts)


def test_every_step_knows_its_template_line(small: Overlay) -> None:
    small.template("gamma", "# compiled\nRUN a\nCOPY b c\n")
    origins = recipes(small)["debian12-core"].origins
    assert [origin for origin in origins if origin.stage == "gamma"] == [
        StepOrigin("gamma", 0, "gamma", "dockerfiles/components/gamma/install.j2", 2),
        StepOrigin("gamma", 1, "gamma", "dockerfiles/components/gamma/install.j2", 3),
    ]


def test_a_template_that_fails_names_file_line_and_image(small: Overlay) -> None:
    small.template("beta", "# beta\nRUN install {{ release.facts.colour }}\n")
    with pytest.raises(RenderError) as caught:
        recipes(small)
    assert str(caught.value) == (
        f"error: {small.root}/dockerfiles/components/beta/install.j2:2: "
        "'dict object' has no attribute 'colour'\n"
        "  while rendering `imagegen/small:debian12-1.13.1-core`\n"
        "\n"
        "hint: correct the template, or add what it asks for to the component's release"
    )


def test_text_has_no_trailing_blanks_and_no_double_empty_lines(project: Project) -> None:
    for recipe in project.recipes(project.family("cpu")):
        assert not re.search(r"[ \t]\n|\n\n\n", recipe.dockerfile)
        assert recipe.dockerfile.endswith("]\n")


def test_images_know_the_checks_of_a_component_that_an_overlay_adds(small: Overlay) -> None:
    alpha = small.root / "dockerfiles/components/alpha/component.yaml"
    alpha.write_text(alpha.read_text() + 'checks: {order: "99", short_names: [first]}\n')
    payload = Payload((small.root, REPOSITORY), (REPOSITORY,))
    shared = ContextFiles(payload, read_catalog(payload)).shared(("validate",))
    [known] = [one for one in shared.after if one.path == "validate/package/components.json"]
    assert orjson.loads(known.data)["alpha"] == {"order": 99, "short_names": ["first"]}
