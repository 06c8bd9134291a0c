"""Test what an image promises about itself."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from imagegen.planner.layer_order import layer_orders
from imagegen.renderer.image_json import (
    BASE_PATH,
    as_json,
    contract,
    environment,
    expectation,
    suites,
)
from imagegen.resolver.resolve import resolve_cells
from unit.conftest import SMALL

if TYPE_CHECKING:
    from imagegen.model.catalog import Catalog
    from imagegen.model.image import ImageSpec
    from imagegen.renderer.image_json import Expectation
    from unit.conftest import Overlay


@pytest.fixture
def catalog(overlay: Overlay) -> Catalog:
    overlay.matrix(SMALL)
    return overlay.catalog


@pytest.fixture
def specs(overlay: Overlay, catalog: Catalog) -> dict[str, ImageSpec]:
    found = resolve_cells(overlay.read().cells, catalog)
    return {spec.cell.name: spec for spec in found}


def document(spec: ImageSpec, catalog: Catalog) -> Expectation:
    return expectation(spec, layer_orders([spec], catalog, {})[spec.os.id], catalog)


def test_every_component_is_there_with_version_source_and_who_asked(
    specs: dict[str, ImageSpec], catalog: Catalog
) -> None:
    found = document(specs["debian12-core"], catalog)
    assert sorted(found["components"]) == ["alpha", "beta", "delta", "gamma"]
    assert found["components"]["beta"] == {
        "version": "1.13.1",
        "variant": "",
        "origin": "beta's archive",
        "source": "the test",
        "via": ["gamma 0.28.1", "matrix small, components `beta`"],
        "facts": {},
    }


def test_what_is_left_out_is_there_with_its_reason(
    specs: dict[str, ImageSpec], catalog: Catalog
) -> None:
    found = document(specs["debian13-none"], catalog)
    assert found["omitted"] == {
        "gamma": "gamma does not compile there",
        "delta": "`delta: none` in matrix small",
    }
    assert found["suites"] == suites(specs["debian13-none"], catalog)
    assert {"gamma", "delta"} <= set(found["suites"])


def test_no_path_of_this_machine_and_no_line_of_a_file_is_in_an_image(
    overlay: Overlay, specs: dict[str, ImageSpec], catalog: Catalog
) -> None:
    for spec in specs.values():
        text = as_json(document(spec, catalog)).decode()
        assert str(overlay.root) not in text
        assert ".yaml:" not in text


def test_a_later_component_comes_first_on_the_path(overlay: Overlay) -> None:
    overlay.component(
        "delta",
        (overlay.root / "dockerfiles/components/delta/component.yaml").read_text()
        + "path: [/opt/delta/bin]\nenv: {DELTA: x}\n",
    )
    (spec, *_) = resolve_cells(overlay.read(SMALL).cells, overlay.catalog)
    env = environment(spec, ("alpha", "beta", "gamma", "delta"), overlay.catalog)
    assert env["PATH"] == f"/opt/delta/bin:/opt/alpha/bin:{BASE_PATH}"
    assert (env["ALPHA"], env["DELTA"], env["LANG"]) == ("1", "x", "C.UTF-8")
    assert list(env) == sorted(env)


def test_a_row_that_is_installed_elsewhere_comes_first_on_the_path(overlay: Overlay) -> None:
    path = overlay.root / "dockerfiles/components/delta/component.yaml"
    path.write_text(
        path.read_text().replace("origin:", "facts: {bin: [/opt/own/bin]}\n    origin:")
    )
    (spec, *_) = resolve_cells(overlay.read(SMALL).cells, overlay.catalog)
    env = environment(spec, ("alpha", "beta", "gamma", "delta"), overlay.catalog)
    assert env["PATH"] == f"/opt/own/bin:/opt/alpha/bin:{BASE_PATH}"


def test_a_contract_unites_what_the_components_ask_for(
    specs: dict[str, ImageSpec], catalog: Catalog
) -> None:
    assert contract(specs["debian12-core"], catalog) == {
        "caps": ["IPC_LOCK", "SYS_PTRACE"],
        "devices": [],
        "ulimits": {"memlock": -1, "stack": 1024},
        "shm_bytes": 128,
        "network": "host",
    }


def test_the_document_is_json_with_one_spelling(
    specs: dict[str, ImageSpec], catalog: Catalog
) -> None:
    found = document(specs["debian12-core"], catalog)
    text = as_json(found)
    assert json.loads(text) == found
    assert text == as_json(dict(reversed(found.items())))
    assert text.endswith(b"}\n")


def test_a_gpu_image_is_one_whose_component_says_so(overlay: Overlay, catalog: Catalog) -> None:
    assert document(resolve_cells(overlay.read().cells, catalog)[0], catalog)["device"] == "cpu"
    path = overlay.root / "dockerfiles/components/beta/component.yaml"
    path.write_text(path.read_text().replace("origin:", "facts: {device: gpu}\n    origin:"))
    fresh = overlay.catalog
    assert document(resolve_cells(overlay.read().cells, fresh)[0], fresh)["device"] == "gpu"
