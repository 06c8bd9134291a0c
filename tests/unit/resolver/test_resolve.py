"""Test that every component of a cell is pinned, or that the facts in conflict are named."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from imagegen.errors import ConfigError, ResolutionError
from imagegen.model.cell import Want
from imagegen.resolver.propagation import Descent, domains_of
from imagegen.resolver.resolve import (
    constraints_of,
    pin,
    resolve_cells,
    space_of,
)
from unit.conftest import SMALL

if TYPE_CHECKING:
    from imagegen.model.image import ImageSpec
    from imagegen.workflow.project import Project
    from unit.conftest import Overlay


def resolved(overlay: Overlay, text: str = SMALL) -> dict[str, ImageSpec]:
    specs = resolve_cells(overlay.read(text).cells, overlay.catalog)
    return {spec.cell.name: spec for spec in specs}


def test_every_component_has_one_release_that_fits_the_os(overlay: Overlay) -> None:
    specs = resolved(overlay)
    pins = {name: {p.component: p.version for p in spec.pins} for name, spec in specs.items()}
    assert pins == {
        "debian12-core": {"alpha": "3.11", "beta": "1.13.1", "gamma": "0.28.1", "delta": "44.0"},
        "debian12-none": {"alpha": "3.11", "beta": "1.13.1", "gamma": "0.28.1"},
        "debian13-core": {"alpha": "3.11", "beta": "2.6.0", "delta": "56.1"},
        "debian13-none": {"alpha": "3.11", "beta": "2.6.0"},
    }


def test_a_tag_has_axes_as_asked_and_components_as_pinned(overlay: Overlay) -> None:
    assert [spec.tag for spec in resolved(overlay).values()] == [
        "imagegen/small:debian12-1.13.1-core",
        "imagegen/small:debian12-1.13.1-none",
        "imagegen/small:debian13-2.6.0-core",
        "imagegen/small:debian13-2.6.0-none",
    ]


def test_an_omitted_component_is_none_in_a_tag(overlay: Overlay) -> None:
    specs = resolved(overlay, SMALL.replace("-{delta}", "-{delta}-{gamma}"))
    assert specs["debian13-core"].tag == "imagegen/small:debian13-2.6.0-core-none"


def test_characters_that_no_tag_has_become_a_dash(overlay: Overlay) -> None:
    specs = resolved(overlay, SMALL.replace("[core, none]", "['>=44,<60']"))
    assert next(iter(specs.values())).tag == "imagegen/small:debian12-1.13.1--44-60"


def test_via_names_all_who_asked(overlay: Overlay) -> None:
    spec = resolved(overlay)["debian12-core"]
    beta = spec.pin("beta")
    assert beta is not None
    assert [text.partition(" (")[0] for text in beta.via] == [
        f"{overlay.root}/matrices/small.yaml, components `beta`",
        "gamma 0.28.1",
    ]


def test_the_newest_release_that_fits_is_chosen(overlay: Overlay) -> None:
    pins = pin([Want("beta", "any", "the test")], overlay.catalog)
    assert (pins["os"].version, pins["beta"].version) == ("debian13", "2.6.0")


def test_a_requirement_of_a_release_backtracks_to_an_older_os(overlay: Overlay) -> None:
    pins = pin([Want("gamma", "any", "the test")], overlay.catalog)
    assert (pins["os"].version, pins["beta"].version) == ("debian12", "1.13.1")


def test_the_same_wishes_give_the_same_answer_in_any_order(overlay: Overlay) -> None:
    wants = [Want(name, "any", "x") for name in ("alpha", "beta", "delta", "gamma")]
    assert pin(wants, overlay.catalog) == pin(wants[::-1], overlay.catalog)


def test_a_conflict_names_both_sides_and_the_releases_that_say_so(overlay: Overlay) -> None:
    text = SMALL[: SMALL.index("  gamma:")] + "  gamma: 0.28.1\n"
    with pytest.raises(ResolutionError) as caught:
        resolved(overlay, text)
    first, second = caught.value.problems
    file = f"{overlay.root}/matrices/small.yaml"
    assert first.text == "cell `debian13-core` cannot be resolved"
    assert second.text == "cell `debian13-none` cannot be resolved"
    assert (first.file, first.line) == (file, 3)
    assert "gamma 0.28.1 asks for beta <2.1" in first.evidence
    assert f"{file}, axis `os` asks for os debian13" in first.evidence
    assert any(line.startswith("beta 1.13.1 asks for ") for line in first.evidence)
    assert first.hint == "correct the matrix, or exclude this cell with a reason"


def test_two_cells_with_one_tag_are_refused(overlay: Overlay) -> None:
    with pytest.raises(ConfigError) as caught:
        resolved(overlay, SMALL.replace("-{delta}", ""))
    assert str(caught.value.problems[0]) == (
        f"error: {overlay.root}/matrices/small.yaml:3: `tag`: "
        "cells `debian12-core` and `debian12-none` have one tag\n"
        "  both would be `imagegen/small:debian12-1.13.1`\n"
        "\n"
        "hint: name the axis that tells them apart in `tag`"
    )


@pytest.mark.parametrize("backwards", [False, True])
def test_what_cells_share_changes_nothing(
    project: Project, backwards: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("imagegen.resolver.propagation.FEW", 0)
    cells = [
        cell for matrix in ("cpu", "cu112", "cu113", "cu124") for cell in project.cells()[matrix]
    ]
    space = space_of(project.catalog, ())
    descent = Descent(space)
    for cell in reversed(cells) if backwards else cells:
        wants = constraints_of(cell)
        alone, after = domains_of(space, wants), descent.domains_of(wants)
        assert (after.left, after.asked) == (alone.left, alone.asked)


def test_a_cell_without_an_answer_leaves_the_others_theirs(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("imagegen.resolver.propagation.FEW", 0)
    space = space_of(project.catalog, ())
    descent = Descent(space)
    answers = []
    for torch in ("1.13.1", "9.9", "1.13.1"):
        wants = [Want("os", "debian12", "test"), Want("torch", torch, "test")]
        answers.append((torch, not descent.domains_of(wants).empty))
    assert answers == [("1.13.1", True), ("9.9", False), ("1.13.1", True)]


@pytest.mark.parametrize(
    ("tag", "why"),
    [
        ("imagegen/small:{os}-{delta}-" + "x" * 120, "characters, 128 are allowed"),
        ("imagegen//small:{os}-{delta}", "`''` cannot be a part of a name"),
        ("imagegen/a..b:{os}-{delta}", "`'a..b'` cannot be a part of a name"),
        ("a/" * 130 + "b:{os}-{delta}", "its name has 261 characters, 255 are allowed"),
    ],
)
def test_a_tag_that_no_image_can_have_is_refused(overlay: Overlay, tag: str, why: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolved(overlay, SMALL.replace("imagegen/small:{os}-{beta}-{delta}", tag))
    problem = caught.value.problems[0]
    assert why in problem.text
    assert (problem.key, problem.file.endswith(".yaml")) == ("tag", True)
