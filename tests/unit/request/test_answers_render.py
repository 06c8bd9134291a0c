"""Test that each answer can be rendered, on each kind of base, and what is no answer."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from imagegen.request.answer import answer_to, pinned
from imagegen.resolver.refusal import Refusal
from unit.request.random_requests import random_requests

if TYPE_CHECKING:
    from imagegen.model.cell import BaseMode
    from imagegen.workflow.project import Project

BASES: tuple[BaseMode, ...] = ("auto", "registry")
COUNT = int(os.environ.get("IMAGEGEN_EXAMPLES", "100"))


def test_every_answer_can_be_rendered(project: Project) -> None:
    rendered = 0
    for request in random_requests(project.catalog, 29, COUNT):
        answer = answer_to(request, project.catalog)
        if not isinstance(answer, Refusal):
            for base in BASES:
                one = replace(answer, cell=replace(answer.cell, base=base))
                assert project.recipe_of(one).dockerfile.startswith("#"), request
            rendered += 1
    assert rendered > COUNT / 5


def test_what_cannot_be_built_is_no_answer_and_no_alternative(project: Project) -> None:
    systems = {name for name, one in project.catalog.os.items() if one.obstacle}
    assert {"centos7", "rockylinux9", "ubuntu26.04"} <= systems
    for name in sorted(systems):
        answer = answer_to({"os": name}, project.catalog)
        assert isinstance(answer, Refusal)
        assert (answer.status, answer.as_data()["pins"]["os"]) == ("unbuildable", name)
        assert answer.alternatives
        assert not {one.pins["os"] for one in answer.alternatives} & systems
    for key in ("torch", "cuda", "nccl", "cudnn", "tensorflow"):
        answer = answer_to({key: "any"}, project.catalog)
        assert not isinstance(answer, Refusal)
        assert pinned(answer)["os"] not in systems
