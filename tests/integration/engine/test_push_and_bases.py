"""Test push, digests and tags with a real registry, and base images."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from image_builder import DEBIAN_12, Builder

from imagegen.engine.images import local_images
from imagegen.engine.images.bases import ensure_base
from imagegen.engine.images.layers import layers
from imagegen.engine.registry.remote_images import digest_of, move_tag, push
from imagegen.errors import EngineError, PublishError
from imagegen.model.image import base_alias
from imagegen.model.labels import LABEL_HOW

if TYPE_CHECKING:
    from imagegen.engine.client import Engine


def test_a_push_moves_no_tag_and_a_tag_moves_no_layer(
    engine: Engine, builder: Builder, registry: str, token: str
) -> None:
    repository = f"{registry}/team/cpu-{token}"
    lines: list[str] = []
    digests = []
    for number in (1, 2):
        image_id = builder(f"RUN echo {token} {number}", tag=f"imagegen/test:{token}-{number}")
        digests.append(push(engine, image_id, f"{repository}:stable", lines.append))
    assert all(digest.startswith("sha256:") for digest in digests)
    assert digests[0] != digests[1]
    assert any("Pushed" in line for line in lines)
    assert digest_of(f"{repository}:stable") is None

    move_tag(repository, digests[0], "stable")
    assert digest_of(f"{repository}:stable") == digests[0]
    move_tag(f"{repository}:stable", digests[1], "stable")
    assert digest_of(f"{repository}:stable") == digests[1]
    move_tag(repository, digests[0], "stable")
    assert digest_of(f"{repository}:stable") == digests[0]

    assert not [
        tag for image in engine.api.images() for tag in image["RepoTags"] or () if repository in tag
    ]


def test_pushing_again_gives_the_same_digest(
    engine: Engine, builder: Builder, registry: str, token: str
) -> None:
    image_id = builder(f"RUN echo {token}", tag=f"imagegen/test:{token}")
    ref = f"{registry}/again-{token}:x"
    assert push(engine, image_id, ref, print) == push(engine, image_id, ref, print)
    assert local_images.find(engine, image_id) is not None


def test_an_image_without_another_name_survives_its_push(
    engine: Engine, builder: Builder, registry: str, token: str
) -> None:
    image_id = builder(f"RUN echo {token}")
    push(engine, image_id, f"{registry}/nameless-{token}:x", print)
    assert local_images.find(engine, image_id) is not None


def test_a_digest_that_is_not_there_moves_no_tag(registry: str, token: str) -> None:
    with pytest.raises(PublishError, match="was not moved"):
        move_tag(f"{registry}/none-{token}", f"sha256:{'0' * 64}", "x")


def test_a_registry_out_of_reach_is_named(engine: Engine, builder: Builder, token: str) -> None:
    image_id = builder(f"RUN echo {token}", tag=f"imagegen/test:{token}")
    with pytest.raises(PublishError, match=r"make sure that `127\.0\.0\.1:1` is in reach"):
        push(engine, image_id, "127.0.0.1:1/cpu:x", print)
    with pytest.raises(PublishError, match="Connection refused"):
        digest_of("127.0.0.1:1/cpu:x")


def test_a_base_that_is_there_is_taken(engine: Engine, debian_base: str) -> None:
    found = ensure_base(engine, DEBIAN_12, "auto", print)
    assert found.ref == debian_base
    image = local_images.find(engine, debian_base)
    assert image is not None
    assert (found.id, found.how) == (image.id, image.labels.get(LABEL_HOW, "registry"))


def test_a_bootstrapped_base_holds_no_package_lists_and_no_trace_of_the_host(
    engine: Engine, debian_base: str
) -> None:
    if ensure_base(engine, DEBIAN_12, "auto", print).how != "bootstrap":
        pytest.fail("this engine's base is not bootstrapped: remove it, then test again")
    ((_, layer),) = ((path, tar.getmembers()) for path, tar in layers(engine, debian_base))
    files = {m.name.removeprefix("./") for m in layer if m.isreg() and m.size}
    assert "etc/debian_version" in files
    assert "etc/ssl/certs/ca-certificates.crt" in files
    assert not {f for f in files if f.startswith(("var/lib/apt/lists/", "var/cache/apt/"))}
    assert not files & {"etc/hostname", "etc/resolv.conf"}


def test_a_local_image_serves_as_the_base_of_a_registry(
    engine: Engine, builder: Builder, token: str
) -> None:
    local = f"imagegen/test:{token}"
    image_id = builder(f"RUN echo {token}", f"LABEL {LABEL_HOW}=", tag=local)
    os = replace(DEBIAN_12, id=f"test-{token}", image=local)
    base = ensure_base(engine, os, "registry", print)
    try:
        assert (base.id, base.how) == (image_id, "registry")
    finally:
        local_images.remove(engine, base.ref)


def test_a_toolkits_base_is_pulled_from_its_mirror_and_not_bootstrapped(
    engine: Engine, builder: Builder, registry: str, token: str
) -> None:
    image_id = builder(f"RUN echo {token}", f"LABEL {LABEL_HOW}=")
    repository = f"{registry}/nv-{token}/cuda"
    move_tag(repository, push(engine, image_id, f"{repository}:9.0", print), "9.0")
    wanted = f"nowhere.invalid/nvidia/cuda-{token}:9.0"
    os = replace(DEBIAN_12, id=f"test-{token}", image=wanted, bootstrap=False)
    lines: list[str] = []
    with pytest.raises(EngineError, match="is not in reach"):
        ensure_base(engine, os, "auto", lines.append)
    base = ensure_base(engine, os, "auto", lines.append, f"{repository}:9.0")
    try:
        assert (base.id, base.how) == (image_id, "registry")
        assert lines == [f"pulling {repository}:9.0"]
    finally:
        local_images.remove(engine, base.ref)
        local_images.remove(engine, f"{repository}:9.0")


def test_no_base_is_an_error_with_a_way_out(engine: Engine, token: str) -> None:
    far = replace(DEBIAN_12, id=f"test-{token}", image=f"127.0.0.1:1/none:{token}")
    with pytest.raises(EngineError, match="hint: set `base: bootstrap`"):
        ensure_base(engine, far, "registry", print)
    with pytest.raises(EngineError, match="cannot be bootstrapped"):
        ensure_base(engine, replace(far, bootstrap=False), "bootstrap", print)
    with pytest.raises(EngineError, match="is not in reach"):
        ensure_base(engine, replace(far, bootstrap=False), "auto", print)


def test_a_suite_that_does_not_exist_shows_what_mmdebstrap_said(engine: Engine, token: str) -> None:
    lines: list[str] = []
    os = replace(DEBIAN_12, id=f"test-{token}", suite="no-such-suite")
    with pytest.raises(EngineError, match="did not bootstrap `no-such-suite`"):
        ensure_base(engine, os, "bootstrap", lines.append)
    assert lines
    assert local_images.find(engine, base_alias(os)) is None
