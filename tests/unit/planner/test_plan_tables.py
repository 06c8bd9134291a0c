"""Test what `plan` says of an order that costs more from nothing than the declared one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from imagegen.planner.cost import Prices, made_anew, total
from imagegen.planner.plan import STALE, PlannedCell, as_data, plan_of
from imagegen.planner.plan_tables import why_it_costs_more
from imagegen.workflow.project import Project

if TYPE_CHECKING:
    from imagegen.planner.plan import Plan
    from unit.conftest import Overlay

MATRIX = """\
name: small
tag: "imagegen/small:{delta}"
axes: {delta: [core, none]}
defaults: {os: debian12}
components: {os: debian12, alpha: any, check: any}
"""

CHECK = """\
name: check
title: Check
seconds: 10
churn: 4
megabytes: 2
suites: [check]
releases:
  - {version: "1", origin: here, source: the test}
"""


@pytest.fixture
def small_plan(small: Overlay) -> Plan:
    """Return two cells with a check each; the matrix names the check before `delta`.

    The cells differ in `delta`, which takes 8 seconds and has 100 MB.
    """
    small.matrix(MATRIX)
    small.component("check", CHECK)
    small.template("check", "RUN check\n")
    path = small.root / "dockerfiles/components/delta/component.yaml"
    small.component("delta", path.read_text().replace('megabytes: "0"', "megabytes: 100"))
    return planned()


def planned() -> Plan:
    project = Project()
    family = project.family("small")
    cells = [PlannedCell(spec, STALE) for spec in family.specs]
    return plan_of(cells, family.orders, Prices(project.catalog, {}), project.catalog)


def test_an_edit_makes_the_layers_of_the_component_anew_and_those_above(small_plan: Plan) -> None:
    (order,) = small_plan.orders.values()
    assert order == ("alpha", "delta", "check")
    (steps,) = small_plan.steps.values()
    (declared,) = small_plan.declared.values()
    assert [step.component for step in made_anew(steps, "check")] == ["check", "check"]
    assert total(made_anew(steps, "check")).seconds == 10 + 10
    assert total(made_anew(declared, "check")).seconds == 10 + 8
    assert made_anew(steps, "alpha") == steps
    assert made_anew(steps, "gamma") == ()


def test_the_next_edit_is_that_of_the_component_that_changes_most_often(small_plan: Plan) -> None:
    assert small_plan.most_edited == "check"
    assert small_plan.edit_as_planned.size_bytes == 2 * 2_000_000
    assert small_plan.edit_as_declared.size_bytes == 2_000_000 + 100_000_000
    data = as_data(small_plan)["next_edit"]
    assert data == {
        "component": "check",
        "as_planned": vars(small_plan.edit_as_planned),
        "as_declared": vars(small_plan.edit_as_declared),
    }


@pytest.mark.parametrize(
    ("jobs", "takes"), [(2, "8.0s less"), (1, "2.0s more")], ids=["side by side", "one by one"]
)
def test_a_plan_says_why_it_costs_more_from_nothing(
    small_plan: Plan, jobs: int, takes: str
) -> None:
    nothing, edit = why_it_costs_more(small_plan, jobs)
    more = "From nothing the planned order takes 10.0s more work than the declared one: "
    assert nothing == more + "it also weighs how often a component changes."
    after = f"After an edit of check, which changes most often, it takes {takes} with {jobs} at "
    assert edit == after + "a time, and writes 98.0 MB less."


def test_where_it_costs_no_more_nothing_is_said(small_plan: Plan, small: Overlay) -> None:
    small.matrix(MATRIX.replace(", check: any", ", delta: any, check: any"))
    same = planned()
    assert same.whole == same.as_declared == small_plan.whole
    assert why_it_costs_more(same, 2) == ()


def without_sizes(small: Overlay) -> None:
    for name, line in (("check", "megabytes: 2\n"), ("delta", "megabytes: 100\n")):
        path = small.root / f"dockerfiles/components/{name}/component.yaml"
        small.component(name, path.read_text().replace(line, 'megabytes: "0"\n'))


@pytest.mark.usefixtures("small_plan")
def test_layers_whose_size_nobody_knows_count_as_nothing(small: Overlay) -> None:
    without_sizes(small)
    _, edit = why_it_costs_more(planned(), 2)
    assert edit.endswith("it takes 8.0s less with 2 at a time, and writes as much.")


@pytest.mark.usefixtures("small_plan")
def test_of_components_that_change_as_often_the_alphabet_takes_the_first(small: Overlay) -> None:
    small.component("check", CHECK.replace("churn: 4", "churn: 0"))
    assert planned().most_edited == "alpha"
