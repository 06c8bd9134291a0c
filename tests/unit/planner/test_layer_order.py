"""Test the chosen order of layers against every possible order."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from imagegen.errors import ConfigError
from imagegen.planner.cost import Prices, total, tree
from imagegen.planner.layer_order import (
    ABSENT,
    cheapest_order,
    distinct_steps,
    layer_orders,
)
from imagegen.resolver.resolve import resolve_cells
from unit.conftest import SMALL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from imagegen.workflow.project import Project
    from unit.conftest import Overlay

Values = dict[str, tuple[str, ...]]
Needs = dict[str, set[str]]


class Drawn(NamedTuple):
    """Hold a small family, as `cheapest_order` takes it."""

    values: Values
    seconds: dict[str, float]
    churn: dict[str, float]
    needs: Needs

    def allowed(self) -> list[tuple[str, ...]]:
        return [order for order in permutations(self.values) if respects(order, self.needs)]


def layers_of(order: Sequence[str], values: Values) -> set[tuple[str, tuple[tuple[str, str], ...]]]:
    """Return the layers of a family by building it: a layer is all that led to it."""
    layers = set()
    for cell in range(len(next(iter(values.values())))):
        below: tuple[tuple[str, str], ...] = ()
        for name in order:
            below = (*below, (name, values[name][cell]))
            if values[name][cell] != ABSENT:
                layers.add((name, below))
    return layers


def cost(order: Sequence[str], family: Drawn) -> float:
    """Return the cost of a build from nothing, and of each change with all layers above it."""
    layers = layers_of(order, family.values)
    whole = sum(family.seconds[name] for name, _ in layers)
    for at, changed in enumerate(order):
        above = order[at + 1 :]
        again = sum(family.seconds[name] for name, _ in layers if name in above)
        whole += family.churn[changed] * again
    return whole


def respects(order: Sequence[str], needs: Needs) -> bool:
    return all(needs[name] <= set(order[:at]) for at, name in enumerate(order))


@st.composite
def families(draw: st.DrawFn, most_churn: int = 32) -> Drawn:
    """Draw families; seconds are whole and churn is in eighths, so that sums are exact."""
    names = draw(st.lists(st.sampled_from("abcde"), unique=True, min_size=1, max_size=5))
    cells = draw(st.integers(1, 4))
    values = {
        name: tuple(draw(st.sampled_from([ABSENT, "1", "2", "3"])) for _ in range(cells))
        for name in names
    }
    seconds = {name: float(draw(st.integers(0, 100))) for name in names}
    churn = {name: draw(st.integers(0, most_churn)) / 8 for name in names}
    needs = {
        name: set(draw(st.lists(st.sampled_from(names[:at]), max_size=2))) if at else set()
        for at, name in enumerate(names)
    }
    return Drawn(values, seconds, churn, needs)


@settings(deadline=None, max_examples=80)
@given(families())
def test_no_order_is_cheaper(family: Drawn) -> None:
    found = cheapest_order(*family)
    assert found in family.allowed()
    assert cost(found, family) == min(cost(order, family) for order in family.allowed())


@settings(deadline=None, max_examples=40)
@given(families(most_churn=0))
def test_where_nothing_ever_changes_no_order_is_cheaper_to_build_from_nothing(
    family: Drawn,
) -> None:
    def cold(order: Sequence[str]) -> float:
        return sum(family.seconds[name] for name, _ in layers_of(order, family.values))

    assert cold(cheapest_order(*family)) == min(map(cold, family.allowed()))


@settings(deadline=None, max_examples=25)
@given(families())
def test_the_order_does_not_depend_on_the_order_of_its_input(family: Drawn) -> None:
    turned = family._replace(values=dict(reversed(family.values.items())))
    assert cheapest_order(*family) == cheapest_order(*turned)


@settings(deadline=None, max_examples=40)
@given(families(), st.data())
def test_a_cell_like_another_moves_no_layer(family: Drawn, data: st.DataObject) -> None:
    cell = data.draw(st.integers(0, len(next(iter(family.values.values()))) - 1))
    grown = {name: (*column, column[cell]) for name, column in family.values.items()}
    assert cheapest_order(*family._replace(values=grown)) == cheapest_order(*family)


def costs_something(family: Drawn) -> bool:
    """Return whether the place of every component matters: what costs nothing may be anywhere."""
    return all(family.seconds.values()) and all(
        set(own) != {ABSENT} for own in family.values.values()
    )


@settings(deadline=None, max_examples=40)
@given(families().filter(costs_something), st.sampled_from(["0new", "new"]), st.integers(0, 100))
def test_a_new_component_that_all_cells_have_alike_for_good_turns_no_two_others_around(
    family: Drawn, name: str, seconds: int
) -> None:
    cells = len(next(iter(family.values.values())))
    grown = cheapest_order(
        {**family.values, name: ("1",) * cells},
        {**family.seconds, name: float(seconds)},
        {**family.churn, name: 0.0},
        {**family.needs, name: set()},
    )
    assert tuple(one for one in grown if one != name) == cheapest_order(*family)


@settings(deadline=None, max_examples=40)
@given(families())
def test_of_orders_that_cost_the_same_the_alphabet_takes_the_first(family: Drawn) -> None:
    least = min(cost(order, family) for order in family.allowed())
    cheapest = [order for order in family.allowed() if cost(order, family) == least]
    assert cheapest_order(*family) == min(cheapest)


def order_of(values: Values, seconds: Mapping[str, float], **churn: float) -> tuple[str, ...]:
    """Return the order of components that need nothing, and never change if no churn is given."""
    return cheapest_order(
        values, seconds, {name: churn.get(name, 0.0) for name in values}, {n: set() for n in values}
    )


def test_what_is_common_comes_before_what_differs() -> None:
    values: Values = {"big": ("1", "1"), "small": ("1", "2")}
    assert order_of(values, {"big": 50, "small": 2}) == ("big", "small")


def test_what_changes_often_comes_after_what_costs_much() -> None:
    """Two checks a week are not worth a layer of 8 GB each, although all cells share the checks."""
    values: Values = {"checks": ("1", "1"), "cuda": ("runtime", "devel")}
    seconds = {"checks": 2, "cuda": 60}
    assert order_of(values, seconds) == ("checks", "cuda")
    assert order_of(values, seconds, checks=0.125) == ("cuda", "checks")
    assert order_of(values, seconds, checks=0.125, cuda=8.0) == ("checks", "cuda")


def test_ties_go_to_the_alphabetically_first_order() -> None:
    values: Values = dict.fromkeys("cab", ("1", "1"))
    assert order_of(values, dict.fromkeys("abc", 1.0)) == ("a", "b", "c")


def test_a_cell_without_a_component_makes_no_layer_of_it() -> None:
    assert distinct_steps({"a": ("1", "2"), "b": ("1", ABSENT)}, ["a"], "b") == 1


def test_a_circle_of_needs_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        cheapest_order(
            {"a": ("1",), "b": ("1",)}, {"a": 1, "b": 1}, {"a": 0, "b": 0}, {"a": {"b"}, "b": {"a"}}
        )
    assert str(caught.value) == "error: the components need one another in a circle\n  a, b"


def test_more_components_than_the_search_carries_are_refused() -> None:
    names = [f"c{number}" for number in range(17)]
    values: Values = dict.fromkeys(names, ("1",))
    with pytest.raises(ConfigError, match="17 components in one matrix; at most 16"):
        order_of(values, dict.fromkeys(names, 1.0))


COMPONENT = """\
name: {0}
title: {0}
seconds: 5
suites: [{0}]
releases:
  - {{version: "1", origin: here, source: the test}}
  - {{version: "2", origin: here, source: the test}}
"""

CROSSED = """\
name: crossed
tag: "imagegen/crossed:{psi}-{omega}"
axes: {os: [debian12], psi: ["1", "2"], omega: ["1", "2"]}
components: {}
exclude:
  - {psi: "2", omega: "1", reason: so that neither comes first by itself}
"""


def test_measured_seconds_win_over_predicted_ones(overlay: Overlay) -> None:
    for name in ("psi", "omega"):
        overlay.component(name, COMPONENT.format(name))
    specs = resolve_cells(overlay.read(CROSSED, "crossed").cells, overlay.catalog)

    def order(**measured: float) -> tuple[str, ...]:
        return layer_orders(specs, overlay.catalog, measured)["debian12"]

    assert order() == ("omega", "psi")
    assert order(psi=50.0) == ("psi", "omega")
    assert order(psi=1.0) == ("omega", "psi")


def test_each_os_has_an_order_of_its_own(overlay: Overlay) -> None:
    specs = resolve_cells(overlay.read(SMALL).cells, overlay.catalog)
    assert layer_orders(specs, overlay.catalog, {}) == {
        "debian12": ("alpha", "beta", "gamma", "delta"),
        "debian13": ("alpha", "beta", "delta"),
    }


OFTEN = """\
name: often
title: What changes with every edit of a check
needs: [alpha]
seconds: 10
churn: "4"
suites: [often]
releases:
  - {version: "1", origin: here, source: the test}
"""


def test_an_edit_of_a_check_makes_no_other_layer_anew(overlay: Overlay) -> None:
    overlay.component("often", OFTEN)
    specs = resolve_cells(overlay.read(f"{SMALL}  often: any\n").cells, overlay.catalog)
    orders = layer_orders(specs, overlay.catalog, {})
    assert sorted(orders) == ["debian12", "debian13"]
    assert {order[-1] for order in orders.values()} == {"often"}


def test_a_family_shares_all_but_the_layer_of_its_axis_and_the_checks(overlay: Overlay) -> None:
    overlay.component("often", OFTEN)
    specs = resolve_cells(overlay.read(f"{SMALL}  often: any\n").cells, overlay.catalog)
    for order in layer_orders(specs, overlay.catalog, {}).values():
        assert order[-2:] == ("delta", "often")
        assert order.index("alpha") < order.index("beta")


def test_no_order_of_the_shipped_matrices_costs_a_cold_build_a_fifth_more(project: Project) -> None:
    for family in project.families():
        for os_id, order in family.orders.items():
            specs = [spec for spec in family.specs if spec.os.id == os_id]
            prices = Prices(project.catalog, {})
            still = replace(
                project.catalog,
                components={
                    name: replace(one, churn=0.0)
                    for name, one in project.catalog.components.items()
                },
            )
            cold = total(tree(specs, layer_orders(specs, still, {})[os_id], prices)).seconds
            assert total(tree(specs, order, prices)).seconds <= 1.2 * cold
