"""Test that wishes become one pinned image of the shipped catalog, or the reason why not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from imagegen.errors import ConfigError, ResolutionError
from imagegen.request.answer import answer_to, same_image
from imagegen.request.arguments import parse
from imagegen.request.saved import as_matrix
from imagegen.resolver.refusal import Refusal
from imagegen.workflow.project import Project
from unit.conftest import CELLS

if TYPE_CHECKING:
    from collections.abc import Callable

    from imagegen.model.image import ImageSpec
    from unit.conftest import Ended

    Run = Callable[..., Ended]

WHY_NOT = "torch 2.1 stops with 'You need C++17'; 1.11 needs Horovod 0.24, 1.3 needs 0.18"


def asked(project: Project, *wishes: str) -> ImageSpec:
    found = answer_to(parse(wishes, project.catalog), project.catalog)
    if isinstance(found, Refusal):
        raise ResolutionError(*found.problems())
    return found


def pins(spec: ImageSpec) -> dict[str, str]:
    return {"os": spec.os.id} | {pin.component: pin.version for pin in spec.pins}


def test_a_wish_leads_to_the_os_that_has_it(project: Project) -> None:
    found = pins(asked(project, "torch=1.13.1", "device=cpu", "os=debian12"))
    assert (found["os"], found["torch"], found["python"]) == ("debian12", "1.13.1", "3.11.2")
    assert {"openmpi", "ssh", "validate"} <= set(found)


def test_a_part_of_every_image_can_be_wished_away(project: Project) -> None:
    assert "openmpi" not in pins(asked(project, "torch=2.6", "openmpi=none"))


def test_what_pins_differently_has_another_tag(project: Project) -> None:
    wishes = [[], ["openmpi=none"], ["rdma=rdma-core"], ["device=cpu"], ["cuda=any"]]
    assert len({asked(project, "torch=2.6", *some).tag for some in wishes}) == 5
    assert asked(project, "os=debian13", "torch=2.6", "rdma=distro").tag == (
        "imagegen/request:debian13-rdma56.1-torch2.6.0"
    )


@pytest.mark.parametrize(
    ("argument", "constraint"),
    [
        ("torch=1.13", "1.13"),
        ("torch>=1.12,<2", ">=1.12,<2"),
        ("torch=>=1.12,<2", ">=1.12,<2"),
        ("torch == 1.13.1", "==1.13.1"),
        ("torch~=1.13", "~=1.13"),
        ("torch!=1.13.0", "!=1.13.0"),
    ],
)
def test_a_constraint_may_be_written_as_for_pip(
    project: Project, argument: str, constraint: str
) -> None:
    assert parse([argument], project.catalog) == {"torch": constraint}


def test_every_argument_that_is_no_wish_is_told(project: Project) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(["torch", "=1", "toch=1", "os=", "ssh=9;rm", "rdma=1", "rdma=2"], project.catalog)
    texts = [problem.text for problem in caught.value.problems]
    assert texts == [
        "`torch` is not of the form KEY=VALUE",
        "`` is not a key of a request",
        "`toch` is not a key of a request",
        "`os=` is not of the form KEY=VALUE",
        "ssh: `9;rm` has characters that no version has",
        "`rdma` is given twice",
    ]
    assert caught.value.problems[2].hint == "did you mean `torch`?"


def test_a_version_that_no_row_has_names_the_known_ones(project: Project) -> None:
    with pytest.raises(ResolutionError) as caught:
        asked(project, "torch=9.11", "os=debian99", "gpu=A1000")
    first, second, third = caught.value.problems
    assert first.text == "`9.11` is not a release of component `torch`"
    newest = "2.12.1, 2.13.0, 2.14.0, 2.14.1, 2.15.0"
    more = "… and 173 more: imagegen catalog torch"
    assert first.evidence == (f"known releases: {newest} {more}",)
    assert second.text == "`debian99` is not an OS of the catalog"
    assert third.text == "`A1000` is not a gpu of the catalog"


def test_wishes_that_collide_name_both_sides_and_the_row_between(project: Project) -> None:
    with pytest.raises(ResolutionError) as caught:
        asked(project, "torch=2.6", "horovod=0.28.1")
    (problem,) = caught.value.problems
    assert problem.text == "torch 2.6 and horovod 0.28.1 do not go together"
    assert problem.evidence == (
        "horovod 0.28.1 asks for torch <2.1",
        "horovod 0.28.1 asks for torch >=1.5,<2.1",
        f"{WHY_NOT} (rule frameworks-of-horovod)",
    )
    assert "imagegen request torch=2.0.1 horovod=0.28.1" in problem.hint


def test_a_request_equal_to_a_cell_is_answered_with_it(project: Project) -> None:
    Path("matrices").mkdir()
    Path("matrices/cells.yaml").write_text(CELLS)
    specs = project.family("cells").specs
    wishes = ("os=debian12", "torch=1.13.1", "horovod=any", "rdma=rdma-core")
    same = same_image(asked(project, *wishes), specs)
    assert same is not None
    assert same.cell.id == "cells/debian12-rdma-core"
    assert same_image(asked(project, "torch=1.13.1"), specs) is None


def test_a_saved_request_reads_back_as_the_same_image(project: Project) -> None:
    spec = asked(project, "os=debian12", "torch=1.13.1", "rdma=any")
    Path("matrices").mkdir()
    text = as_matrix("mine", spec, "team a", "2030-01-31")
    Path("matrices/mine.yaml").write_text(text)
    family = Project().family("mine")
    assert [pins(found) for found in family.specs] == [pins(spec)]
    assert family.specs[0].tag == "imagegen/mine:debian12-rdma44.0-torch1.13.1"
    assert (family.matrix.owner, family.matrix.expires) == ("team a", "2030-01-31")


@pytest.mark.parametrize(
    ("wish", "code"),
    [("torch=9.11", 4), ("os=debian99", 4), ("colour=red", 2), ("torch", 2), ("torch=1\n", 2)],
)
def test_the_verb_ends_with_the_code_of_the_problem(run: Run, wish: str, code: int) -> None:
    ended = run("request", wish)
    assert (ended.code, ended.out) == (code, "")
    assert ended.err.startswith("error: ")


def test_the_verb_answers_without_an_engine(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere.sock")
    monkeypatch.setattr("imagegen.request.existing._label_here", lambda _: "")
    ended = run("request", "os=debian12", "torch=any", "--format", "json")
    answer = json.loads(ended.out)
    assert (ended.code, answer["status"], answer["pins"]["torch"]) == (0, "ok", "1.13.1")


@pytest.mark.parametrize("name", ["../x", "x\n", "X", "a b", ""])
def test_a_saved_request_has_a_plain_name(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("imagegen.request.existing._label_here", lambda _: "")
    ended = run("request", "torch=2.6", f"--save={name}")
    assert not list(tmp_path.rglob("*.yaml"))
    assert ended.code == 2
