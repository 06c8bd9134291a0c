"""An answer for people fits a screen; the paths of rows are for `--why` and for programs."""

from __future__ import annotations

import io
import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from imagegen.catalog.reader import read_catalog
from imagegen.config.payload import Payload
from imagegen.console.console import make_console
from imagegen.model.release import Release
from imagegen.renderer.ways import in_words
from imagegen.request.answer import answer_to
from imagegen.request.arguments import parse
from imagegen.request.existing import Found
from imagegen.request.report import COLUMNS, Answer, next_command, show
from imagegen.resolver.candidates import Space
from imagegen.resolver.refusal import Refusal
from unit.conftest import CELLS, REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable

    from imagegen.workflow.project import Project
    from unit.conftest import Ended

    Run = Callable[..., Ended]

ROWS = 24
SEEDS = yaml.safe_load((REPOSITORY / "tests/cases/requests/seeds.yaml").read_text())
ORDINARY = [
    "torch=any",
    "torch=1.11 cuda=11.3 ofed=5.4",
    "os=ubuntu22.04 torch=2.4.0",
    "horovod=0.28.1 torch=2.0.1 gpu=V100",
    "tensorflow=2.12 cuda=11.8 cudnn=8.6 nccl=any",
    "lightcc=3.1.1 torch=1.11.0+cu113 harp=1.3",
    "ofed=4.9-4.0.8.0",
]
LONG = [case["ask"] for case in SEEDS if case["answer"] == "ok"]
"""Of up to eleven components, each asked for by its version."""

REFUSED = [
    "torch=1.11 cuda=11.2",
    "torch=99.0",
    "torch=1.11.0+cu999",
    "nccl=cuda99",
    "os=ubuntu99",
    "gpu=A1000",
    "torchvision=0.99",
    "ofed=5.4-9",
    "horovod=0.28.1 torch=2.1.2",
    "harp=1.3 rdma=distro",
    "driver=525 cuda=13.0",
]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in the checkout, so that paths of its files are absolute; and without an engine."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("imagegen.request.existing.image_labels", lambda _: {})


def answered(asked: str, project: Project) -> Refusal | Answer:
    constraints = parse(shlex.split(asked), project.catalog)
    found = answer_to(constraints, project.catalog)
    if isinstance(found, Refusal):
        return found
    answer = Answer(found, Found())
    return replace(answer, command=next_command(answer, asked.split(), [], "", lambda _: True))


@pytest.mark.parametrize("asked", [*ORDINARY, *LONG])
def test_an_answer_fits_a_screen(asked: str, project: Project) -> None:
    answer, out = answered(asked, project), io.StringIO()
    assert isinstance(answer, Answer)
    show(answer, make_console("plain", out, out))
    lines = out.getvalue().splitlines()
    assert len(lines) <= ROWS + 2 * (asked in LONG), out.getvalue()
    assert [line for line in lines[1:] if len(line) > COLUMNS and "next: " not in line] == []
    assert str(REPOSITORY) not in out.getvalue()
    assert ".csv" not in out.getvalue()
    assert all(" (rule " in text or " (known bad " in text for text in answer.spec.warnings)


@pytest.mark.parametrize("asked", REFUSED)
def test_a_refusal_fits_a_screen_and_says_its_sentence_once(asked: str, project: Project) -> None:
    refusal = answered(asked, project)
    assert isinstance(refusal, Refusal)
    text = "\n\n".join(str(problem) for problem in refusal.problems())
    lines = [line for line in text.splitlines() if line]
    assert len(lines) <= ROWS / 2, text
    assert [line for line in lines if len(line) > COLUMNS + 10] == []
    assert len({*lines}) == len(lines)
    assert str(REPOSITORY) not in text
    assert ".csv" not in text


def test_an_answer_reads_so(run: Run) -> None:
    ended = run("request", "torch=1.13.1", "os=debian12")
    assert ended.out == (
        "imagegen/request:debian12-torch1.13.1  (not built yet, computes on the CPU)\n"
        "component  version   from\n"
        "os         debian12  debian:bookworm-slim\n"
        "openmpi    4.1.4     apt packages\n"
        "python     3.11.2    apt packages\n"
        "ssh        9.2       apt packages\n"
        "torch      1.13.1    apt packages\n"
        "validate   0.1.0     pip wheel\n"
        "device cpu\n"
        "rests on: known, facts with sources: `--why`\n"
        "warning: os debian12: support ended 2026-07-11, extended until 2028-06-30 "
        "(rule end-of-life)\n"
        "next: imagegen request torch=1.13.1 os=debian12 --save torch-1-13-1 &&\n"
        "      imagegen build --matrix torch-1-13-1\n"
    )


def test_why_adds_who_asked_and_the_rows_below_their_root(run: Run) -> None:
    said = run("request", "torch=1.13.1", "os=debian12", "--why").out
    row = next(line for line in said.splitlines() if line.startswith("torch "))
    assert row.rpartition("  ")[2].startswith("dockerfiles/components/torch/component.yaml:")
    assert "the request" in row
    assert "apt python3-torch of Debian 12, CPU build" in row
    assert str(REPOSITORY) not in said


def test_why_adds_who_asked_and_the_rows_to_a_refusal(run: Run) -> None:
    said = run("request", "torch=1.11", "cuda=11.2", "--why").err
    assert "  the request asks for torch 1.11\n" in said
    assert "asks for cuda 11.5 (dockerfiles/components/torch/releases.csv:" in said


def test_programs_read_the_paths_of_this_machine(run: Run) -> None:
    data = json.loads(run("request", "torch=1.13.1", "os=debian12", "--format", "json").out)
    file, _, line = data["rows"]["torch"].rpartition(":")
    assert file == str(REPOSITORY / "dockerfiles/components/torch/component.yaml")
    assert int(line) > 1
    refused = json.loads(run("request", "torch=1.11", "cuda=11.2", "--format", "json").out)
    csv = str(REPOSITORY / "dockerfiles/components/torch/releases.csv")
    assert any(row.startswith(csv) for row in refused["conflicts"][0]["rows"])


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        (("torch=1.13.1", "--save", "mine"), "next: imagegen build --matrix mine"),
        (("torch=1.13.1", "--allow-unknown"), "torch=1.13.1 --allow-unknown --save torch-1-13-1"),
    ],
)
def test_the_next_command_is_ready(asked: tuple[str, ...], line: str, run: Run) -> None:
    assert line in run("request", *asked).out


def test_the_next_command_of_a_cell_is_its_build(run: Run) -> None:
    Path("matrices").mkdir()
    Path("matrices/cells.yaml").write_text(CELLS)
    said = run("request", "os=debian12", "torch=1.13.1", "rdma=none", "horovod=any").out
    assert "--matrix cells debian12-none" in said


def test_a_name_that_is_taken_is_not_proposed(run: Run) -> None:
    assert run("request", "torch=1.13.1", "--save", "torch-1-13-1").code == 0
    assert "--save torch-1-13-1-2 &&" in run("request", "torch=1.13.1", "python=3.9").out


def test_the_command_that_follows_is_the_one_that_is_printed(run: Run) -> None:
    said = run("request", "torch=1.13.1", "os=debian12").out
    command = said.partition("next: ")[2].partition(" &&")[0]
    assert run(*shlex.split(command)[1:]).code == 0
    assert run("list", "--matrix", "torch-1-13-1").code == 0


def test_a_note_with_its_release_is_one_line() -> None:
    payload = Payload((REPOSITORY,), (REPOSITORY,))
    space = Space(read_catalog(payload))
    long = [
        f"{row.component} {row.version}: {note}"
        for rows in space.candidates.values()
        for row in rows
        for note in row.notes
        if len(f"warning: {row.component} {row.version}: {note}") > COLUMNS
    ]
    assert sorted(set(long)) == []


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"artifact": "harp", "wheels": {"x": "2"}}, "vendor part"),
        ({"variant": "conda", "tarball": {"url": "u"}, "apt": {"a": "*"}}, "conda package"),
        ({"facts": {"image": "11.3.1"}}, "base image"),
        ({"tarball": {"url": "u"}}, "archive"),
        ({"index": "i", "wheels": {"x": "1"}}, "wheel index"),
        ({"wheels": {"x": "1"}, "apt": {"a": "*"}}, "pip wheel"),
        ({"wheels": {"pip": "24"}, "apt": {"a": "*"}}, "apt packages"),
        ({}, ""),
    ],
)
def test_an_origin_is_two_words(keys: dict[str, object], words: str) -> None:
    needed: dict[str, object] = {"component": "x", "version": "1", "variant": "", "requires": {}}
    needed |= {"apt": {}, "build_apt": {}, "wheels": {}, "facts": {}, "origin": "", "source": ""}
    row = Release(**{**needed, "file": "", "line": 0, **keys})  # type: ignore[arg-type]
    assert in_words(row) == words


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (("torch=1.13.1", "os=debian12"), True),
        (("torch=1.13.1", "os=debian12", "device=cpu"), False),
        (("tensorflow=2.12", "cuda=none"), True),
        (("torch=1.13.1",), False),
    ],
)
def test_the_first_line_says_that_an_image_is_for_the_cpu(
    asked: tuple[str, ...], says: bool, run: Run
) -> None:
    assert ("computes on the CPU" in run("request", *asked).out.splitlines()[0]) == says


def test_a_request_is_saved_in_the_overlay(run: Run, tmp_path: Path) -> None:
    overlay = tmp_path / "mine"
    overlay.mkdir()
    ended = run("request", "torch=1.13.1", "--save", "team", "--overlay", str(overlay))
    assert f"wrote {overlay}/matrices/team.yaml" in ended.out
    assert (overlay / "matrices/team.yaml").is_file()
    assert not Path("matrices/team.yaml").exists()
    again = run("request", "torch=1.13.1", "--save", "team", "--overlay", str(overlay))
    assert again.code == 2


def test_a_saved_request_is_the_cell_of_its_own_matrix(run: Run, tmp_path: Path) -> None:
    asked = ("torch=1.13.1", "os=debian12", "rdma=none", "horovod=0.28.1")
    assert "imagegen/cpu:debian12-torch1.13.1-none  (" in run("request", *asked).out
    ended = run("request", *asked, "--save", "team-a", "--overlay", str(tmp_path))
    tag = "imagegen/team-a:debian12-horovod0.28.1-torch1.13.1-no-rdma"
    assert f"{tag}  (not built yet, cell team-a/debian12)" in ended.out
    assert "next: imagegen build --matrix team-a --overlay" in ended.out
