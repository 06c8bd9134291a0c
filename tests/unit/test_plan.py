"""The order of layers, against every order there is."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from imagegen.errors import ConfigError
from imagegen.plan import ABSENT, cheapest_order, distinct_steps, layer_orders
from imagegen.resolve import resolve_cells
from unit.conftest import SMALL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from imagegen.family import House
    from unit.conftest import Overlay

Values = dict[str, tuple[str, ...]]
Needs = dict[str, set[str]]


def cost(order: Sequence[str], values: Values, seconds: Mapping[str, float]) -> float:
    """What a family costs in an order, counted by building it: a layer is all that led to it."""
    layers = set()
    for cell in range(len(next(iter(values.values())))):
        below: tuple[tuple[str, str], ...] = ()
        for name in order:
            below = (*below, (name, values[name][cell]))
            if values[name][cell] != ABSENT:
                layers.add((name, below))
    return sum(seconds[name] for name, _ in layers)


def respects(order: Sequence[str], needs: Needs) -> bool:
    return all(needs[name] <= set(order[:at]) for at, name in enumerate(order))


@st.composite
def families(draw: st.DrawFn) -> tuple[Values, dict[str, float], Needs]:
    names = draw(st.lists(st.sampled_from("abcde"), unique=True, min_size=1, max_size=5))
    cells = draw(st.integers(1, 4))
    values = {
        name: tuple(draw(st.sampled_from([ABSENT, "1", "2", "3"])) for _ in range(cells))
        for name in names
    }
    seconds = {name: float(draw(st.integers(0, 100))) for name in names}
    needs = {
        name: set(draw(st.lists(st.sampled_from(names[:at]), max_size=2))) if at else set()
        for at, name in enumerate(names)
    }
    return values, seconds, needs


@settings(deadline=None, max_examples=80)
@given(families())
def test_no_order_is_cheaper(family: tuple[Values, dict[str, float], Needs]) -> None:
    values, seconds, needs = family
    allowed = [order for order in permutations(values) if respects(order, needs)]
    found = cheapest_order(values, seconds, needs)
    assert found in allowed
    assert cost(found, values, seconds) == min(cost(o, values, seconds) for o in allowed)


@settings(deadline=None, max_examples=25)
@given(families())
def test_the_order_does_not_depend_on_the_order_of_its_input(
    family: tuple[Values, dict[str, float], Needs],
) -> None:
    values, seconds, needs = family
    turned = dict(reversed(values.items()))
    assert cheapest_order(values, seconds, needs) == cheapest_order(turned, seconds, needs)


@settings(deadline=None, max_examples=40)
@given(families(), st.data())
def test_a_cell_like_another_moves_no_layer(
    family: tuple[Values, dict[str, float], Needs], data: st.DataObject
) -> None:
    values, seconds, needs = family
    cell = data.draw(st.integers(0, len(next(iter(values.values()))) - 1))
    grown = {name: (*column, column[cell]) for name, column in values.items()}
    assert cheapest_order(grown, seconds, needs) == cheapest_order(values, seconds, needs)


def costs_something(family: tuple[Values, dict[str, float], Needs]) -> bool:
    """Whether the place of every component matters: what costs nothing may stand anywhere."""
    values, seconds, _ = family
    return all(seconds.values()) and all(set(own) != {ABSENT} for own in values.values())


@settings(deadline=None, max_examples=40)
@given(families().filter(costs_something), st.sampled_from(["0new", "new"]), st.integers(0, 100))
def test_a_new_component_that_all_cells_have_alike_turns_no_two_others_around(
    family: tuple[Values, dict[str, float], Needs], name: str, cost: int
) -> None:
    values, seconds, needs = family
    cells = len(next(iter(values.values())))
    grown = cheapest_order(
        {**values, name: ("1",) * cells}, {**seconds, name: float(cost)}, {**needs, name: set()}
    )
    assert tuple(one for one in grown if one != name) == cheapest_order(values, seconds, needs)


@settings(deadline=None, max_examples=40)
@given(families())
def test_of_orders_that_cost_the_same_the_alphabet_takes_the_first(
    family: tuple[Values, dict[str, float], Needs],
) -> None:
    values, seconds, needs = family
    allowed = [order for order in permutations(values) if respects(order, needs)]
    least = min(cost(order, values, seconds) for order in allowed)
    cheapest = [order for order in allowed if cost(order, values, seconds) == least]
    assert cheapest_order(values, seconds, needs) == min(cheapest)


def test_what_is_common_comes_before_what_differs() -> None:
    values: Values = {"big": ("1", "1"), "small": ("1", "2")}
    assert cheapest_order(values, {"big": 50, "small": 2}, {"big": set(), "small": set()}) == (
        "big",
        "small",
    )


def test_ties_go_to_the_alphabetically_first_order() -> None:
    values: Values = dict.fromkeys("cab", ("1", "1"))
    assert cheapest_order(values, dict.fromkeys("abc", 1.0), {n: set() for n in "abc"}) == (
        "a",
        "b",
        "c",
    )


def test_a_cell_without_a_component_makes_no_layer_of_it() -> None:
    assert distinct_steps({"a": ("1", "2"), "b": ("1", ABSENT)}, ["a"], "b") == 1


def test_a_circle_of_needs_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        cheapest_order({"a": ("1",), "b": ("1",)}, {"a": 1, "b": 1}, {"a": {"b"}, "b": {"a"}})
    assert str(caught.value) == "error: the components need one another in a circle\n  a, b"


def test_more_components_than_the_search_carries_are_refused() -> None:
    names = [f"c{number}" for number in range(17)]
    values: Values = dict.fromkeys(names, ("1",))
    with pytest.raises(ConfigError, match="17 components in one matrix; at most 16"):
        cheapest_order(values, dict.fromkeys(names, 1.0), {name: set() for name in names})


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


def test_the_cpu_family_shares_all_but_the_rdma_layer(house: House) -> None:
    family = house.family("cpu")
    for order in family.orders.values():
        assert order[-1] == "rdma"
        assert order.index("python") < order.index("torch")
