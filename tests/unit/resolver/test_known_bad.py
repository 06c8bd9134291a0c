"""Test that no answer has a combination that is known to fail, unless the request leaves none."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from imagegen.model.catalog import Catalog, KnownBad
from imagegen.request.answer import answer_to
from imagegen.request.arguments import parse
from imagegen.resolver.refusal import Refusal
from imagegen.resolver.resolve import resolve_cell

if TYPE_CHECKING:
    from imagegen.model.image import ImageSpec
    from imagegen.workflow.project import Project


def bad(**components: str) -> KnownBad:
    return KnownBad(
        name="mine",
        symptom="it hangs",
        workaround="-e QUIET=1",
        where="launch",
        source=("https://example.org",),
        expires="2027-01-01",
        components={name: (text,) for name, text in components.items()},
        unless_env={"QUIET": "1"},
    )


def with_rows(project: Project, *rows: KnownBad) -> Catalog:
    one = project.catalog
    return Catalog(one.os, one.components, one.virtual, one.rules, rows)


def asked(catalog: Catalog, *arguments: str) -> ImageSpec:
    found = answer_to(parse(arguments, catalog), catalog)
    assert not isinstance(found, Refusal)
    return found


def version(spec: ImageSpec, name: str) -> str:
    pin = spec.pin(name)
    assert pin is not None
    return pin.version


REQUEST = ("nccl=any", "cuda=12.2", "os=ubuntu22.04")


def test_the_best_answer_without_one_is_taken(project: Project) -> None:
    newest = version(asked(with_rows(project), *REQUEST), "nccl")
    found = asked(with_rows(project, bad(nccl=newest)), *REQUEST)
    assert version(found, "nccl") != newest
    assert not [text for text in found.warnings if "known bad" in text]


def test_what_a_row_names_first_gives_way(project: Project) -> None:
    plain = asked(with_rows(project), *REQUEST)
    nccl, python = version(plain, "nccl"), version(plain, "python")
    found = asked(with_rows(project, bad(nccl=nccl, python=python)), *REQUEST)
    assert (version(found, "nccl") != nccl, version(found, "python")) == (True, python)


def test_who_asks_for_one_gets_it_with_the_workaround(project: Project) -> None:
    newest = version(asked(with_rows(project), *REQUEST), "nccl")
    catalog = with_rows(project, bad(nccl=newest))
    found = asked(catalog, f"nccl={newest}", *REQUEST[1:])
    [text] = [one for one in found.warnings if "known bad" in one]
    assert text.startswith(f"nccl {newest} (")
    assert text.endswith("it hangs; workaround: -e QUIET=1 (known bad mine)")


def test_a_row_needs_all_that_it_names(project: Project) -> None:
    newest = version(asked(with_rows(project), *REQUEST), "nccl")
    rows = with_rows(project, bad(nccl=newest, gpu="H100"))
    assert version(asked(rows, *REQUEST), "nccl") == newest
    assert version(asked(rows, *REQUEST, "gpu=H100"), "nccl") != newest


def test_a_copy_in_a_wheel_is_known_too(project: Project) -> None:
    found = asked(project.catalog, "torch=2.2.0", "gpu=H100")
    [text] = [one for one in found.warnings if "known bad nccl-2.19-nvls" in one]
    assert text.startswith("nccl 2.19.3 in torch 2.2.0+cu121 with gpu H100: ")


def test_a_variable_of_the_image_makes_it_good(project: Project) -> None:
    newest = version(asked(with_rows(project), *REQUEST), "nccl")
    catalog = with_rows(project, bad(nccl=newest))
    cell = asked(catalog, f"nccl={newest}", *REQUEST[1:]).cell
    quiet = resolve_cell(replace(cell, tag="x:y", env={"QUIET": "1"}), catalog)
    assert not [text for text in quiet.warnings if "known bad" in text]


@pytest.mark.parametrize(
    ("arguments", "row"),
    [
        (("nccl=2.17.1", "cuda=12.1", "gpu=H100"), "nccl-2.17-nvls"),
        (("nccl=2.4.2",), "nccl-2.4-sockets"),
    ],
)
def test_shipped_rows_warn(arguments: tuple[str, ...], row: str, project: Project) -> None:
    found = answer_to(parse(arguments, project.catalog), project.catalog)
    if isinstance(found, Refusal):
        pytest.fail(str(found.problems()))
    assert [text for text in found.warnings if row in text]


def test_alternatives_are_what_their_commands_answer(project: Project) -> None:
    newest = version(asked(with_rows(project), "nccl=any", "cuda=12.1"), "nccl")
    catalog = with_rows(project, bad(nccl=newest))
    found = answer_to(parse(["nccl=any", "cuda=12.1", "torch=1.13.1"], catalog), catalog)
    assert isinstance(found, Refusal)
    instead = found.as_data()["alternatives"]
    assert instead
    for one in instead:
        again = asked(catalog, *shlex.split(one["command"])[2:])
        assert one["pins"].get("nccl", "") == version(again, "nccl")
        assert one["pins"].get("nccl") != newest
