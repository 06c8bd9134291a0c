"""Test that a refusal shows every smallest collision, and facts that prove each."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING

import pytest

from imagegen.model.cell import Want
from imagegen.model.constraint import ANY, NONE
from imagegen.request.arguments import as_cell, meant, parse
from imagegen.resolver.blame import fits
from imagegen.resolver.conflict import conflicts_of
from imagegen.resolver.refusal import EVERY_IMAGE
from imagegen.resolver.resolve import constraints_of, space_of
from unit.request.random_requests import random_requests

if TYPE_CHECKING:
    from collections.abc import Sequence

    from imagegen.model.catalog import Catalog
    from imagegen.resolver.candidates import Space
    from imagegen.resolver.conflict import Conflict
    from imagegen.resolver.proof import Fact
    from imagegen.workflow.project import Project

COUNT = int(os.environ.get("IMAGEGEN_EXAMPLES", "60"))


def asked(text: str | dict[str, str], catalog: Catalog) -> tuple[Space, tuple[Want, ...]]:
    constraints = parse(text.split(), catalog) if isinstance(text, str) else text
    wants = constraints_of(as_cell(meant(constraints, catalog), catalog))
    return space_of(catalog, wants), wants


def conflicts(text: str, project: Project) -> list[str]:
    return [one.sentence for one in conflicts_of(*asked(text, project.catalog))]


def satisfiable(space: Space, wants: Sequence[Want], facts: Sequence[Fact]) -> bool:
    """Return whether any choice agrees with these constraints and facts alone."""
    absent = {w.component for w in wants if w.constraint == NONE} | {"driver"}
    left = {name: space.every(name) for fact in facts for name in (fact.source, fact.target)}
    for name in absent & left.keys():
        left[name] |= space.every(name) + 1
    for want in wants:
        name, everything = want.component, space.every(want.component)
        if want.constraint != ANY:
            mask = everything + 1 if want.constraint == NONE else space.meant(name, want.constraint)
            left[name] = left.get(name, everything) & mask
    return _any(left, facts)


def _any(left: dict[str, int], facts: Sequence[Fact]) -> bool:
    changed = True
    while changed and all(left.values()):
        changed = False
        for fact in facts:
            source, target = left[fact.source], left[fact.target]
            if source & fact.stating and not target & fact.accepted:
                left[fact.source], changed = source & ~fact.stating, True
            elif not source & ~fact.stating and target & ~fact.accepted:
                left[fact.target], changed = target & fact.accepted, True
    if not all(left.values()):
        return False
    open_ = [name for name, mask in left.items() if mask & (mask - 1)]
    if not open_ or not facts:
        return True
    name = min(open_, key=lambda one: left[one].bit_count())
    values = (1 << index for index in range(left[name].bit_length()) if left[name] >> index & 1)
    return any(_any({**left, name: value}, facts) for value in values)


def assert_proved(space: Space, conflict: Conflict) -> None:
    if conflict.facts:
        assert not satisfiable(space, conflict.wants, conflict.facts), conflict.text


def test_the_facts_alone_have_no_answer(project: Project) -> None:
    refused = 0
    for request in random_requests(project.catalog, 13, COUNT):
        space, wants = asked(request, project.catalog)
        if not fits(space, wants):
            found = conflicts_of(space, wants)
            refused += 1
            assert 1 <= len(found) <= 5
            for one in found:
                assert_proved(space, one)
    assert refused > COUNT / 4


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "torch=2.8 os=ubuntu18.04 python=3.6 cuda=10.2 gpu=H100",
            [
                "python 3.6 and torch 2.8 do not go together",
                "cuda 10.2 and gpu H100 do not go together",
                "torch 2.8 and os ubuntu18.04 do not go together",
                "torch 2.8 and cuda 10.2 do not go together",
            ],
        ),
        (
            "tensorflow=1.15.0 device=cpu cuda=10.0",
            ["device cpu and cuda 10.0 do not go together"],
        ),
        (
            "torch=9.9 os=debian99",
            ["the catalog has no torch 9.9", "the catalog has no os debian99"],
        ),
    ],
)
def test_every_smallest_collision_is_named(
    text: str, expected: list[str], project: Project
) -> None:
    assert conflicts(text, project) == expected


def smallest(space: Space, wants: Sequence[Want]) -> list[set[Want]]:
    """List the smallest sets of constraints that have no answer, by trying all of them."""
    always = [one for one in wants if one.asked_by == EVERY_IMAGE]
    asked_for = [one for one in wants if one not in always]
    lax = not fits(space, wants, allow_unknown=True)
    found: list[set[Want]] = []
    for size in range(1, len(asked_for) + 1):
        for some in itertools.combinations(asked_for, size):
            if not any(one <= {*some} for one in found) and not fits(
                space, [*always, *some], allow_unknown=lax
            ):
                found.append({*some})
    return found


def test_no_smallest_collision_is_left_out(project: Project) -> None:
    compared = 0
    for request in random_requests(project.catalog, 4711, COUNT):
        space, wants = asked(request, project.catalog)
        if len(request) > 4 or fits(space, wants):
            continue
        found = conflicts_of(space, wants)
        for one in smallest(space, wants):
            compared += 1
            others = [{w for w in other.wants if w.asked_by != EVERY_IMAGE} for other in found]
            shown = any(other <= one for other in others)
            assert shown or len(found) == 5, (request, one)
    assert compared > COUNT / 4


def test_what_a_constraint_brings_in_does_not_hide_another_collision(project: Project) -> None:
    assert conflicts("nccl=2.18.1 torch=1.10.0+cpu cudnn=9.3.0.75", project) == [
        "nccl 2.18.1 and torch 1.10.0+cpu do not go together",
        "torch 1.10.0+cpu and cudnn 9.3.0.75 do not go together",
    ]


def test_a_component_added_to_a_matrix_is_named_where_it_has_no_release(project: Project) -> None:
    for cell in project.cells()["cpu"]:
        wants = (*constraints_of(cell), Want("tensorflow", ANY, "the test"))
        space = space_of(project.catalog, wants)
        if not fits(space, wants):
            named = {want.component for want in conflicts_of(space, wants)[0].wants}
            assert "tensorflow" in named, cell.name


def test_the_chain_between_two_constraints_is_shown(project: Project) -> None:
    space, wants = asked("horovod=0.21.3 cuda=12.1", project.catalog)
    first = conflicts_of(space, wants)[0]
    assert first.sentence == "horovod 0.21.3 and cuda 12.1 do not go together"
    assert [(fact.source, fact.target) for fact in first.facts[:2]] == [
        ("horovod", "torch"),
        ("torch", "cuda"),
    ]


def test_what_is_impossible_either_way_is_not_unknown(project: Project) -> None:
    space, wants = asked("ofed=5.4-3.1.0.0 os=ubuntu18.04 cuda=12.8", project.catalog)
    assert not fits(space, wants, allow_unknown=True)
    assert not any(one.unknown for one in conflicts_of(space, wants))
    space, wants = asked("ofed=5.4-3.1.0.0 os=ubuntu18.04", project.catalog)
    assert all(one.unknown for one in conflicts_of(space, wants))


def test_what_is_unknown_is_said_in_a_sentence(project: Project) -> None:
    space, wants = asked("cuda=13.4.0", project.catalog)
    (only,) = conflicts_of(space, wants)
    assert only.sentence == "whether cuda 13.4.0 works is unknown"
    assert only.facts[0].text == "no base image of cuda 13.4.0 is known"
