"""Test `imagegen request`: pins, existing images, impossible requests, a saved matrix, a build."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from imagegen.engine.images import local_images
from imagegen.engine.registry import remote_images
from imagegen.model.recipe import ContextFile

if TYPE_CHECKING:
    from command_line import CommandLine
    from image_builder import Builder
    from tiny_family import TinyFamily, TinyMaker

BASICS = ("python=none", "openmpi=none", "ssh=none", "validate=none")
"""Every requested image has these components by default; without them it builds in seconds."""


@pytest.fixture(scope="module")
def shop(make_tiny: TinyMaker) -> TinyFamily:
    """Make a component in two releases; no release of the check fits the second one."""
    tiny = make_tiny()
    name = f"part-{tiny.token}"
    tiny.component(name, "RUN echo {{ release.version }} TOKEN > /part", ("1", "2"))
    description = tiny.root / f"dockerfiles/components/{name}/component.yaml"
    text = description.read_text()
    description.write_text(
        text.replace("version: '2'", "version: '2'\n  requires: {check: '>=3', os: debian12}")
    )
    tiny.check()
    return tiny


def request(shop: TinyFamily, *arguments: str, code: int = 0) -> object:
    ended = shop.run(
        "request", "--overlay", str(shop.root), "--format", "json", *arguments, code=code
    )
    return ended.documents[-1]


def part(shop: TinyFamily) -> str:
    return f"part-{shop.token}"


def test_it_pins_every_component(shop: TinyFamily) -> None:
    answer = request(shop, "os=debian12", f"{part(shop)}=1", "torch=1.13.1", "rdma=none")
    assert isinstance(answer, dict)
    assert answer["status"] == "ok"
    assert answer["cell"] is None
    pins = answer["pins"]
    assert (pins["os"], pins["torch"], pins[part(shop)]) == ("debian12", "1.13.1", "1")
    assert set(pins) >= {"python", "openmpi", "ssh", "validate"}
    assert "rdma" not in pins


def test_a_request_that_is_a_cell_says_so(shop: TinyFamily, cpu_family: dict[str, str]) -> None:
    answer = request(shop, "os=debian13", "torch=2.6.0")
    assert isinstance(answer, dict)
    assert (answer["cell"], answer["status"]) == ("cpu/debian13-none", "exists")
    assert answer["image"] == cpu_family["debian13-none"]


def test_what_does_not_fit_is_named(shop: TinyFamily) -> None:
    ended = shop.run("request", "os=debian13", "python=3.13", "torch=1.13.1", code=4)
    assert " do not go together" in ended.err.splitlines()[0]
    assert "torch 1.13.1 asks for python 3.11" in ended.err
    assert "hint: instead, nearest first:" in ended.err
    argv = ("request", "--overlay", str(shop.root), f"{part(shop)}=2", "check=any", *BASICS)
    ended = shop.run(*argv, code=4)
    assert f"{part(shop)} 2 " in ended.err
    assert "check" in ended.err
    ended = shop.run("request", "torch=9", code=4)
    assert "`9` is not a release of component `torch`" in ended.err
    assert "known releases: " in ended.err
    assert "imagegen catalog torch" in ended.err
    ended = shop.run("request", "trch=1", code=2)
    assert "did you mean `torch`?" in ended.err


def test_a_saved_request_is_a_matrix(shop: TinyFamily) -> None:
    wishes = ("os=debian12", f"{part(shop)}=1", "check=1", *BASICS)
    argv = ("--overlay", str(shop.root))
    ended = shop.run("request", *argv, *wishes, "--save", shop.matrix, "--owner", "team-1")
    path = shop.root / "matrices" / f"{shop.matrix}.yaml"
    assert f"wrote {path}" in ended.out
    assert "owner: team-1" in path.read_text()
    again = shop.run("request", *argv, *wishes, "--save", shop.matrix, code=2)
    assert "exists already" in again.err

    rows = shop.run("list", *argv, "--matrix", shop.matrix, "--format", "json").result
    assert [row["components"] for row in rows] == [{part(shop): "1", "check": "1"}]
    built = shop.run("build", *argv, "--matrix", shop.matrix, "--format", "json").result
    assert [row["outcome"] for row in built] == ["built"]
    image = local_images.find(shop.engine, rows[0]["image"])
    assert image is not None
    assert image.id == built[0]["id"]

    answer = request(shop, *wishes)
    assert isinstance(answer, dict)
    assert (answer["status"], answer["cell"]) == ("exists", f"{shop.matrix}/debian12")


def test_an_image_in_a_registry_answers_too(shop: TinyFamily, registry: str) -> None:
    wishes = ("os=debian12", f"{part(shop)}=1", "check=1", *BASICS)
    shop.run("request", "--overlay", str(shop.root), *wishes, "--build")
    answer = request(shop, *wishes)
    assert isinstance(answer, dict)
    ref = answer["image"]
    built = local_images.find(shop.engine, ref)
    assert built is not None
    there = f"{registry}/team/{ref.rpartition('/')[2]}"
    digest = remote_images.push(shop.engine, built.id, there, lambda _: None)
    remote_images.move_tag(there, digest, ref.rpartition(":")[2], shop.engine)
    local_images.remove(shop.engine, ref)
    answer = request(shop, *wishes, "--registry", f"{registry}/team")
    assert isinstance(answer, dict)
    assert (answer["status"], answer["image"]) == ("exists", there)
    answer = request(shop, *wishes, "--registry", f"{registry}/others")
    assert isinstance(answer, dict)
    assert (answer["status"], answer["image"]) == ("ok", ref)
    answer = request(shop, *wishes, "--registry", "localhost:1/team")
    assert isinstance(answer, dict)
    assert answer["status"] == "ok"
    assert any("the registry was not heard" in warning for warning in answer["warnings"])
    shop.run("request", *wishes, "--registry", "not a/registry", code=2)


def test_build_builds_what_was_asked_for(shop: TinyFamily) -> None:
    open_wishes = ("os=debian12", f"{part(shop)}=1", *BASICS)
    argv = ("request", "--overlay", str(shop.root))
    failed = shop.run(*argv, *open_wishes, "check=2", "--build", code=6)
    assert "tiny.verdict: the verdict of release 2" in failed.err
    local_images.remove(shop.engine, failed.err.partition("  image ")[2].split()[0])
    wishes = (*open_wishes, "check=1")
    path = shop.root / "matrices" / f"{shop.matrix}.yaml"
    path.unlink(missing_ok=True)
    ended = shop.run(*argv, *wishes, "--build")
    ref = ended.out.rpartition("built ")[2].strip()
    try:
        assert ref.startswith("imagegen/request:debian12-")
        assert local_images.find(shop.engine, ref) is not None
        answer = request(shop, *wishes, "--build")
        assert isinstance(answer, dict)
        assert (answer["status"], answer["image"]) == ("exists", ref)
    finally:
        for image in local_images.list_labelled(shop.engine, "io.imagegen.matrix=request"):
            if any(shop.token in tag for tag in image.tags):
                local_images.remove(shop.engine, image.id, force=True)


SITE = "/usr/local/lib/python3.11/dist-packages"
DISTS = "for one in torch-2.0.1 jax-0.4.13; do mkdir -p $one.dist-info; echo pip > $one.dist-info"
BY_HAND = (
    "ENV CUDA_VERSION=11.8.0",
    f"RUN mkdir -p {SITE} && cd {SITE} && {DISTS}/INSTALLER; done",
)


def test_a_request_like_an_image_of_any_maker(builder: Builder, command_line: CommandLine) -> None:
    image = builder(*BY_HAND)
    found = command_line("request", "--like", image, "--format", "json").result
    rows = {row["component"]: row for row in found["like"]["rows"]}
    assert (rows["torch"]["had"], rows["torch"]["differs"]) == ("2.0.1", "")
    assert found["pins"]["torch"] == "2.0.1+cu117"
    assert found["pins"]["os"] == "debian12"
    assert rows["cuda"]["had"] == "11.8.0"
    assert rows["validate"]["differs"] == "added: every image has it"
    assert found["like"]["uncovered"] == ["jax 0.4.13"]
    asked = [f"{name}={value}" for name, value in found["like"]["request"].items()]
    assert command_line("request", *asked, "--format", "json").result["pins"] == found["pins"]
    text = command_line("request", "--like", image, "torch=1.13.1").out
    assert "asked for" in next(line for line in text.splitlines() if line.startswith("torch "))


@pytest.mark.usefixtures("cpu_family")
def test_a_request_like_an_own_image_is_its_cell(command_line: CommandLine) -> None:
    found = command_line("request", "--like", "cpu/debian12-none", "--format", "json").result
    assert (found["status"], found["cell"]) == ("exists", "cpu/debian12-none")
    assert {row["differs"] for row in found["like"]["rows"]} == {""}


def test_an_image_with_nothing_known_is_refused_in_words(
    builder: Builder, command_line: CommandLine
) -> None:
    bare = builder("FROM scratch", "COPY hello /hello", files=(ContextFile("hello", b"hello"),))
    said = command_line("request", "--like", bare, code=3).err
    assert f"nothing in `{bare}` is known to the catalog" in said
    assert "what is inside: it does not start" in said
    found = command_line("request", "--like", bare, "torch=1.13.1", "--format", "json").result
    assert found["pins"]["torch"].startswith("1.13.1")
    assert found["like"]["not_read"]
