"""Test what an order of layers will cost."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from imagegen.planner.chain import chain_of
from imagegen.planner.cost import (
    Cost,
    Prices,
    Total,
    declared_order,
    missing,
    plus,
    prefixes,
    total,
    tree,
    trunk,
    uncounted,
    unshared,
    unsized,
    walk,
)
from imagegen.workflow.project import Project

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.model.catalog import Catalog
    from imagegen.model.image import ImageSpec
    from imagegen.workflow.project import Family
    from unit.conftest import Overlay

ORDER = ("alpha", "beta", "gamma", "delta")
MEASURED = {("beta", "1.13.1"): Cost(30.0, 900), ("delta", "44.0 core"): Cost(0.0, 70)}


@pytest.fixture
def project(small: Overlay) -> Project:
    path = "dockerfiles/components/alpha/component.yaml"
    text = (small.root / path).read_text()
    small.write(path, text.replace('megabytes: "0"', 'megabytes: "50"'))
    return Project()


@pytest.fixture
def family(project: Project) -> Family:
    return project.family("small")


def on_debian12(family: Family) -> list[ImageSpec]:
    return [spec for spec in family.specs if spec.os.id == "debian12"]


def test_cells_share_the_steps_below_what_differs(project: Project, family: Family) -> None:
    (bottom,) = tree(on_debian12(family), ORDER, Prices(project.catalog, {}))
    told = [(step.component, step.release, len(step.cells)) for step in walk([bottom])]
    assert told == [
        ("alpha", "3.11", 2),
        ("beta", "1.13.1", 2),
        ("gamma", "0.28.1", 2),
        ("delta", "44.0 core", 1),
    ]


def test_a_component_that_a_cell_lacks_is_passed_over(project: Project, family: Family) -> None:
    order = ("delta", "alpha", "beta", "gamma")
    trees = tree(on_debian12(family), order, Prices(project.catalog, {}))
    assert [step.component for step in trees] == ["delta", "alpha"]
    assert total(trees).steps == 7


def test_predicted_and_measured_costs(project: Project, family: Family) -> None:
    specs = on_debian12(family)
    predicted = total(tree(specs, ORDER, Prices(project.catalog, {})))
    assert predicted == Total(4, 213.0, 50_000_000, 213.0)
    measured = total(tree(specs, ORDER, Prices(project.catalog, MEASURED)))
    assert measured == Total(4, 168.0, 50_000_970, 168.0)


def test_a_size_may_depend_on_a_word_of_the_layer_s_name(small: Overlay) -> None:
    path = "dockerfiles/components/delta/component.yaml"
    text = (small.root / path).read_text()
    small.write(path, text.replace('megabytes: "0"', 'megabytes: {other: "1", core: "9"}'))
    project = Project()
    spec = project.family("small").specs[0]
    pin = spec.pin("delta")
    assert pin is not None
    assert Prices(project.catalog, {}).of(spec, pin) == Cost(8.0, 9_000_000)


def test_a_size_that_nobody_knows_is_named(project: Project, family: Family) -> None:
    steps = tree(on_debian12(family), ORDER, Prices(project.catalog, {}))
    assert unsized(steps) == ("beta", "delta", "gamma")
    sized = {("beta", "1.13.1"): Cost(30.0, 900), ("delta", "44.0 core"): Cost(0.0, 70)}
    assert unsized(tree(on_debian12(family), ORDER, Prices(project.catalog, sized))) == ("gamma",)


def test_every_layer_of_the_shipped_matrices_has_a_size(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, shipped: Catalog
) -> None:
    monkeypatch.chdir(tmp_path)
    project = Project()
    project.__dict__["catalog"] = shipped  # a cached property, filled
    for family in project.families():
        for os_id, order in family.orders.items():
            specs = [spec for spec in family.specs if spec.os.id == os_id]
            assert unsized(tree(specs, order, Prices(shipped, {}))) == ()


def test_the_sum_over_cells_counts_a_shared_step_for_each(project: Project, family: Family) -> None:
    every = unshared(tree(on_debian12(family), ORDER, Prices(project.catalog, {})))
    assert every == Total(7, 418.0, 100_000_000, 213.0)


def test_what_an_image_has_is_not_built_again(project: Project, family: Family) -> None:
    specs = on_debian12(family)
    trees = tree(specs, ORDER, Prices(project.catalog, {}))
    plain = next(spec for spec in specs if spec.pin("delta") is None)
    there = prefixes([chain_of(plain, ORDER)])
    assert [step.component for step in missing(trees, there)] == ["delta"]
    assert missing(trees, set()) == trees


def test_the_trunk_is_what_all_cells_stand_on_and_knows_what_stands_on_it(
    project: Project, family: Family
) -> None:
    trees = {"debian12": tree(on_debian12(family), ORDER, Prices(project.catalog, MEASURED))}
    alpha, beta, gamma = trunk(trees)
    assert [layer.component for layer in (alpha, beta, gamma)] == ["alpha", "beta", "gamma"]
    assert (alpha.os_id, alpha.size_bytes, beta.size_bytes) == ("debian12", 50_000_000, 900)
    delta = [step.cost.seconds for step in walk(trees["debian12"]) if step.component == "delta"]
    assert sorted(seconds for _, seconds in gamma.above) == [0.0, *delta]
    assert [two - one for (_, one), (_, two) in zip(beta.above, alpha.above, strict=True)] == [
        30.0,
        30.0,
    ]


def test_cells_that_part_at_the_lowest_layer_have_no_trunk(
    project: Project, family: Family
) -> None:
    order = ("delta", "alpha", "beta", "gamma")
    trees = {"debian12": tree(on_debian12(family), order, Prices(project.catalog, {}))}
    assert trunk(trees) == ()


def test_one_cell_has_no_trunk(project: Project, family: Family) -> None:
    one = tree(on_debian12(family)[:1], ORDER, Prices(project.catalog, {}))
    assert trunk({"debian12": one}) == ()


def test_families_stand_side_by_side() -> None:
    both = plus([Total(2, 10.0, 5, 8.0), Total(1, 9.0, 6, 9.0)])
    assert both == Total(3, 19.0, 11, 9.0)
    assert [both.lasting(jobs) for jobs in (0, 1, 2, 9)] == [19.0, 19.0, 9.5, 9.0]


def test_the_declared_order_is_the_matrix_s_with_needs_first(
    project: Project, family: Family
) -> None:
    assert declared_order(on_debian12(family), ORDER, project.catalog) == ORDER
    turned = [spec for spec in on_debian12(family) if spec.pin("delta")]
    wants = tuple(reversed(turned[0].cell.wants))
    one = replace(turned[0], cell=replace(turned[0].cell, wants=wants))
    assert declared_order([one], ORDER, project.catalog) == ("delta", "alpha", "beta", "gamma")


def test_what_is_counted_as_nothing_is_named() -> None:
    assert uncounted(()) == ""
    said = "nobody knows the size of alpha, beta: it counts as nothing"
    assert uncounted(("alpha", "beta")) == said
