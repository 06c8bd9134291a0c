"""Test requests with known answers, from the compatibility rules and the seed documents."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from imagegen.request.answer import answer_to, pinned
from imagegen.request.arguments import parse
from imagegen.resolver.refusal import Refusal
from unit.conftest import REPOSITORY

if TYPE_CHECKING:
    from imagegen.workflow.project import Project

FOLDER = REPOSITORY / "tests/cases/requests"


def cases() -> list[Any]:
    found = []
    for path in sorted(FOLDER.glob("*.yaml")):
        for case in yaml.load(path.read_text(), yaml.BaseLoader):
            assert set(case) <= {"ask", "answer", "pins", "warns", "silent", "says", "instead"}, (
                case
            )
            found.append(pytest.param(case, id=case["ask"]))
    return found


def test_there_are_enough_cases() -> None:
    answers = [case.values[0]["answer"] for case in cases()]
    assert len(answers) >= 100
    assert {"ok", "impossible", "unknown", "unbuildable"} == set(answers)


@pytest.mark.parametrize("case", cases())
def test_a_request_has_its_known_answer(case: dict[str, Any], project: Project) -> None:
    words = shlex.split(case["ask"])
    allow = "--allow-unknown" in words
    wishes = parse([word for word in words if "=" in word], project.catalog)
    answer = answer_to(wishes, project.catalog, allow_unknown=allow)
    if isinstance(answer, Refusal):
        _refused(answer, case, project)
        return
    assert case["answer"] == "ok", pinned(answer)
    pins = pinned(answer)
    for name, version in case.get("pins", {}).items():
        assert pins[name].startswith(version), pins
    for text in case.get("warns", []):
        assert any(text in warning for warning in answer.warnings), answer.warnings
    for text in case.get("silent", []):
        assert not any(text in warning for warning in answer.warnings), answer.warnings


def _refused(answer: Refusal, case: dict[str, Any], project: Project) -> None:
    unknown = bool(answer.conflicts) and answer.conflicts[0].unknown
    assert case["answer"] == ("unknown" if unknown else answer.status), answer.text
    told = "\n".join(str(problem) for problem in answer.problems())
    for text in case.get("says", []):
        assert text in told
    ready = [str(one["command"]) for one in answer.as_data()["alternatives"]]
    for text in case.get("instead", []):
        assert any(text in one.split() for one in ready), ready
    for one in ready:
        words = shlex.split(one)[2:]
        wishes = parse([word for word in words if not word.startswith("--")], project.catalog)
        allow = "--allow-unknown" in words
        again = answer_to(wishes, project.catalog, allow_unknown=allow)
        assert not isinstance(again, Refusal), one
