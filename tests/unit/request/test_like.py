"""Test the request that is nearest to an image, and how it is shown beside the image."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

from imagegen.console.console import make_console
from imagegen.engine.images.contents import ImageContents, Package
from imagegen.engine.images.inventory import Inventory
from imagegen.inspection.found import find_components
from imagegen.request.answer import answer_to
from imagegen.request.arguments import parse
from imagegen.request.existing import Found
from imagegen.request.like import compare, nearest_request
from imagegen.request.like_report import Like, show_like
from imagegen.request.report import Answer
from imagegen.resolver.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from imagegen.model.image import ImageSpec
    from imagegen.workflow.project import Project

SITE = "/usr/local/lib/python3.10/dist-packages"


def inventory(
    *wheels: str, debs: Sequence[str] = (), os: str = "ubuntu 22.04", **env: str
) -> Inventory:
    name, _, version = os.partition(" ")
    packages = [Package("pypi", n, v, path=f"{SITE}/{n}-{v}.dist-info") for n, v in _pairs(wheels)]
    packages += [Package("deb", n, v, "amd64") for n, v in _pairs(debs)]
    contents = ImageContents(tuple(packages), os={"ID": name, "VERSION_ID": version})
    return Inventory("any:1", "sha256:a", "", 0, {}, env, (), contents)


def _pairs(texts: Sequence[str]) -> list[list[str]]:
    return [text.split("==") for text in texts]


class Asked:
    """The answer to the request that is nearest to an image."""

    def __init__(self, project: Project, read: Inventory, *given: str) -> None:
        own = parse(given, project.catalog)
        found = find_components(read, project.catalog)
        nearest = nearest_request(found, own, project.catalog)
        spec = answer_to(parse(nearest.arguments, project.catalog), project.catalog)
        assert not isinstance(spec, Refusal), spec.problems()
        self.spec: ImageSpec = spec
        self.rows = {row.component: row for row in compare(found, spec, nearest, own)}
        self.like = Like("any:1", found, nearest, own)
        self.constraints = nearest.constraints


def test_an_image_that_grew_by_hand(project: Project) -> None:
    asked = Asked(
        project,
        inventory(
            "torch==2.0.1",
            "torchvision==0.15.2",
            "horovod==0.28.1",
            debs=("openmpi-bin==4.1.2-2ubuntu1", "openssh-server==1:8.9p1-3"),
            CUDA_VERSION="11.7.1",
        ),
    )
    assert asked.spec.os.id == "ubuntu22.04"
    versions = {pin.component: pin.version for pin in asked.spec.pins}
    assert versions["torch"] == "2.0.1+cu117"
    assert versions["horovod"] == "0.28.1"
    assert versions["cuda"].startswith("11.7")
    assert versions["python"].startswith("3.10")
    assert asked.rows["torch"].differs == ""
    assert asked.rows["validate"].differs == "added: every image has it"


def test_the_framework_stays_and_what_does_not_fit_gives_way(project: Project) -> None:
    read = inventory("tensorflow==2.6.0", os="ubuntu 24.04", CUDA_VERSION="12.4.1")
    asked = Asked(project, read)
    pin = asked.spec.pin("tensorflow")
    assert pin is not None
    assert pin.version == "2.6.0"
    assert asked.rows["tensorflow"].differs == ""
    row = asked.rows["cuda"]
    assert row.had == "12.4.1"
    assert row.gets != "12.4.1"
    assert "do not go together" in row.differs
    assert asked.like.nearest.reasons["cuda"] in row.differs


def test_a_version_that_the_catalog_lacks_is_named(project: Project) -> None:
    asked = Asked(project, inventory("torch==1.13.9", os="debian 12"))
    assert asked.rows["torch"].differs == "version: not in the catalog"
    asked = Asked(project, inventory("torch==2.0.1", os="ubuntu 22.10"))
    assert asked.rows["os"].differs == "version: not in the catalog"
    assert asked.spec.os.id == "ubuntu22.04"


def test_the_arguments_win_over_the_image(project: Project) -> None:
    read = inventory("torch==2.0.1")
    asked = Asked(project, read, "torch=1.13.1", "os=debian12", "rdma=rdma-core")
    assert asked.rows["torch"].gets == asked.spec.pin("torch").version  # type: ignore[union-attr]
    assert asked.rows["torch"].differs.endswith("asked for")
    assert asked.rows["rdma"].differs == "added: asked for"
    assert asked.spec.os.id == "debian12"
    assert Asked(project, read, "ofed=5.8").spec.pin("rdma") is not None


def test_an_image_with_nothing_known_becomes_any_image(project: Project) -> None:
    asked = Asked(project, inventory(os="alpine 3.20"))
    assert asked.constraints == {}
    assert asked.rows["os"].had == "alpine 3.20"


def test_an_image_of_this_tool_gets_exactly_its_pins(project: Project) -> None:
    for spec in project.family("cpu").specs:
        pins = {(pin.component, pin.version, pin.release.variant) for pin in spec.pins}
        said = {name: {"version": version, "variant": other} for name, version, other in pins}
        os = {"ID": spec.os.os_id, "VERSION_ID": spec.os.version_id}
        contents = ImageContents(os=os, promise={"components": said})
        asked = Asked(project, Inventory(spec.tag, "sha256:a", "", 0, {}, {}, (), contents))
        got = {(pin.component, pin.version, pin.release.variant) for pin in asked.spec.pins}
        assert got == pins
        assert {row.differs for row in asked.rows.values()} == {""}


def shown(asked: Asked, fmt: str) -> str:
    out = io.StringIO()
    answer = Answer(asked.spec, Found(), command="imagegen build")
    console = make_console(fmt, out, io.StringIO())
    show_like(answer, asked.like, tuple(asked.rows.values()), console)
    return out.getvalue()


def test_the_page_fits_a_screen_and_says_what_no_component_covers(project: Project) -> None:
    text = shown(Asked(project, inventory("torch==2.0.1", "jax==0.4.35", os="debian 12")), "plain")
    assert "like any:1: imagegen/request:debian12-" in text
    assert "component" in text.splitlines()[1]
    assert "no component covers: jax 0.4.35" in text
    assert text.splitlines()[-1] == "next: imagegen build"
    assert len(text.splitlines()) <= 24


def test_programs_get_the_same(project: Project) -> None:
    asked = Asked(project, inventory("torch==2.0.1", "jax==0.4.35", os="debian 12"))
    found = json.loads(shown(asked, "json"))
    assert found["status"] == "ok"
    assert found["like"]["uncovered"] == ["jax 0.4.35"]
    torch = next(one for one in found["like"]["found"] if one["component"] == "torch")
    assert torch["evidence"] == f"wheel torch 2.0.1 in {SITE}"
    assert found["like"]["request"]["torch"].startswith("2.0.1+cu117")
