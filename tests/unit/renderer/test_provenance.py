"""Test what an image was made from, and which part of it changed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from imagegen.model.labels import LABEL_INPUTS, labelled_inputs
from imagegen.renderer import provenance as inputs
from imagegen.renderer.provenance import changes, inputs_of, labelled
from imagegen.workflow.project import Project

if TYPE_CHECKING:
    from imagegen.model.recipe import Recipe
    from unit.conftest import Overlay

COMPONENTS = "dockerfiles/components"


@pytest.fixture
def files(small: Overlay) -> Overlay:
    small.template("beta", "# a comment\nRUN install beta\nRUN more {{ release.version }}\n")
    small.template("gamma", "COPY gamma/tool /tool\nRUN build against {{ pins.beta.version }}\n")
    small.write(f"{COMPONENTS}/gamma/files/tool", "one\n")
    return small


def recipe(cell: str = "debian12-core") -> Recipe:
    project = Project()
    (found,) = project.recipes(project.family("small"), [cell])
    return found


def edit(files: Overlay, path: str, old: str, new: str) -> None:
    text = (files.root / path).read_text()
    assert old in text
    files.write(path, text.replace(old, new))


def after(files: Overlay, path: str, old: str, new: str) -> list[str]:
    before = inputs_of(recipe())
    edit(files, path, old, new)
    return changes(before, recipe())


def test_nothing_changed(files: Overlay) -> None:
    del files
    assert changes(inputs_of(recipe()), recipe()) == []


def test_the_label_is_one_line_that_reads_back(files: Overlay) -> None:
    files.write(f"{COMPONENTS}/gamma/files/it's", "quoted\n")
    made = recipe()
    label = labelled(made.dockerfile, made).splitlines()[-1]
    assert labelled(made.dockerfile, made).startswith(made.dockerfile)
    value = label.removeprefix(f"LABEL {LABEL_INPUTS}='").removesuffix("'")
    assert "'" not in value
    assert labelled_inputs({LABEL_INPUTS: value}) == inputs_of(made)
    assert "file gamma/it's" in json.loads(value)


@pytest.mark.parametrize("label", ["", "not JSON", "[]"])
def test_an_image_without_a_readable_label_says_nothing(label: str) -> None:
    assert labelled_inputs({LABEL_INPUTS: label} if label else {}) == {}


def test_a_template_is_named_with_the_line_that_changed(files: Overlay) -> None:
    path = f"{COMPONENTS}/beta/install.j2"
    assert after(files, path, "RUN more", "RUN much more") == [f"{path}:3 changed"]


def test_a_comment_in_a_template_is_no_cause(files: Overlay) -> None:
    edit(files, f"{COMPONENTS}/gamma/files/tool", "one", "one")
    before = inputs_of(recipe())
    edit(files, f"{COMPONENTS}/beta/install.j2", "# a comment", "# another comment")
    edit(files, f"{COMPONENTS}/gamma/files/tool", "one", "two")
    assert changes(before, recipe()) == ["context file gamma/tool changed"]


def test_a_version_is_the_cause_and_the_steps_that_follow_are_not(files: Overlay) -> None:
    path = f"{COMPONENTS}/beta/component.yaml"
    line = 1 + (files.root / path).read_text().splitlines().index("  - version: 1.13.1")
    assert after(files, path, "version: 1.13.1", "version: 1.13.2") == [
        f"beta 1.13.1 -> 1.13.2 ({path}:{line})"
    ]


def test_a_row_whose_version_stays_is_named(files: Overlay) -> None:
    path = f"{COMPONENTS}/beta/component.yaml"
    (said,) = after(files, path, "origin: beta's archive", "origin: beta's mirror")
    assert said.startswith(f"release row beta 1.13.1 changed ({path}:")


def test_an_os_file_is_named(files: Overlay) -> None:
    path = "dockerfiles/os/debian12.yaml"
    assert after(files, path, 'glibc: "2.12"', 'glibc: "2.13"') == [f"OS file {path} changed"]


def test_a_context_file_that_comes_and_goes_is_named(files: Overlay) -> None:
    before = inputs_of(recipe())
    added = files.write(f"{COMPONENTS}/gamma/files/new", "new\n")
    assert changes(before, recipe()) == ["context file gamma/new is new"]
    with_it = inputs_of(recipe())
    added.unlink()
    assert changes(with_it, recipe()) == ["context file gamma/new is gone"]


def test_the_tool_is_named(files: Overlay, monkeypatch: pytest.MonkeyPatch) -> None:
    del files
    before = inputs_of(recipe())
    monkeypatch.setattr(inputs, "__version__", "9.9.9")
    assert changes(before, recipe()) == ["imagegen 0.1.0 -> 9.9.9"]


def test_components_come_and_go(files: Overlay) -> None:
    del files
    full, less = recipe("debian12-core"), recipe("debian12-none")
    assert changes(inputs_of(less), full)[0].startswith("delta 44.0 (core) is new (")
    assert changes(inputs_of(full), less) == ["delta 44.0 (core) is gone"]


def test_the_order_of_layers_is_named(files: Overlay) -> None:
    said = after(files, f"{COMPONENTS}/delta/component.yaml", "seconds: 8", "seconds: 8")
    assert said == []
    before = inputs_of(recipe())
    before["order"] = "delta alpha beta gamma"
    assert changes(before, recipe()) == ["the order of layers: alpha > beta > gamma > delta"]


def test_an_environment_is_named(files: Overlay) -> None:
    path = f"{COMPONENTS}/alpha/component.yaml"
    assert after(files, path, 'ALPHA: "1"', 'ALPHA: "2"') == [
        "the environment of alpha in its component.yaml changed"
    ]


def test_what_only_the_matrix_says_is_named(files: Overlay) -> None:
    said = after(files, "matrices/small.yaml", "name: small", "name: small\nprofile: rdma")
    assert said == ["what matrix small or component.yaml says of the cell changed: profile"]
