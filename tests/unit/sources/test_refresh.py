"""Test the rows that an index proposes for the catalog, from the words of pip."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from imagegen.catalog.reader import read_table
from imagegen.sources.refresh import (
    as_patch,
    as_text,
    exact_requirements,
    platform_of,
    projects_of,
    proposals,
    row_of,
    with_known_glibc,
)

if TYPE_CHECKING:
    from imagegen.sources.refresh import Proposal
    from imagegen.workflow.project import Project
    from unit.conftest import Overlay

SHA = "a" * 64


def told(*names: str) -> list[str]:
    return [f"  Found link https://i.example/f/{name}#sha256={SHA} (from x)" for name in names]


TORCH = told(
    "torch-2.6.0-cp312-cp312-manylinux1_x86_64.whl",
    "torch-2.7.0-cp39-cp39-manylinux_2_28_x86_64.whl",
    "torch-2.7.0-cp313-cp313t-manylinux_2_28_x86_64.whl",
    "torch-2.7.0-cp313-cp313-manylinux_2_28_x86_64.whl",
    "torch-2.7.0-cp313-cp313-manylinux_2_28_aarch64.whl",
    "torch-2.8.0rc1-cp313-cp313-manylinux_2_28_x86_64.whl",
    "torch-2.9.0-cp313-none-macosx_11_0_arm64.whl",
    "torch-1.0.0-cp37-cp37m-manylinux1_x86_64.whl",
    "torchvision-9.9.9-cp313-cp313-manylinux_2_28_x86_64.whl",
)


def newest() -> Proposal:
    (found,) = proposals("torch", ["2.6.0+cu124"], TORCH)
    return found


def test_only_newer_final_releases_for_linux_are_proposed() -> None:
    assert [one.version for one in proposals("torch", ["2.6.0+cu124"], TORCH)] == ["2.7.0"]


def test_a_release_between_known_ones_is_proposed() -> None:
    found = proposals("torch", ["1.0.0", "2.7.0"], TORCH)
    assert [one.version for one in found] == ["2.6.0"]


def test_the_glibc_of_manylinux1_is_that_of_the_nearest_known_release(project: Project) -> None:
    torch = project.catalog.components["torch"]
    (one,) = proposals("torch", ["1.0.0", "2.7.0"], TORCH)
    row = with_known_glibc(row_of(one, "python", "2026-11-22"), torch)
    assert "glibc" not in row_of(one, "python", "2026-11-22")["requires"]
    assert row["requires"]["glibc"] in (">=2.17", ">=2.28")


@pytest.mark.parametrize(
    ("name", "wheel", "cells"),
    [
        ("nccl", "nvidia-nccl-cu12", "pypi,9.9.9,"),
        ("tensorflow", "tensorflow", "tensorflow,9.9.9,"),
        ("torch", "torch", "pypi,9.9.9,"),
    ],
)
def test_rows_become_a_patch_that_only_adds(
    name: str, wheel: str, cells: str, project: Project
) -> None:
    table = read_table(project.payload, name)
    assert table is not None
    file = f"{wheel.replace('-', '_')}-9.9.9-py3-none-manylinux2014_x86_64.whl"
    (one,) = proposals(wheel, ["1.0"], told(file))
    patch = as_patch(table, [row_of(one, "python", "2026-11-22")]).splitlines()
    assert patch[:2] == [
        f"{sign} {side}/dockerfiles/components/{name}/releases.csv"
        for sign, side in (("---", "a"), ("+++", "b"))
    ]
    added = [line for line in patch[2:] if line[0] in "+-"]
    assert len(added) == 1
    assert added[0].startswith(f"+{cells}")
    assert name == wheel or wheel in added[0]


def test_all_that_is_missing_is_proposed_on_demand() -> None:
    found = proposals("torch", ["2.6.0"], TORCH, every=True)
    assert [one.version for one in found] == ["2.7.0", "1.0.0"]


def test_a_row_says_what_file_names_say_and_what_they_do_not() -> None:
    row = row_of(newest(), "python", "2026-11-21")
    assert row == {
        "version": "2.7.0",
        "requires": {"python": ["3.9", "3.13"], "glibc": ">=2.28"},
        "wheels": {"torch": "2.7.0"},
        "notes": ["file names do not say what else it asks for: CUDA, driver, C++ standard …"],
        "origin": "pip torch==2.7.0",
        "source": (
            "the index that pip is set to, asked 2026-11-21: "
            "torch-2.7.0-cp313-cp313-manylinux_2_28_x86_64.whl and 2 more"
        ),
    }


@pytest.mark.parametrize(
    ("names", "requires"),
    [
        (["x-2-py3-none-any.whl"], None),
        (["x-2-cp38-abi3-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"], {"glibc": ">=2.17"}),
        (["x-2-py3-none-manylinux_2_18_x86_64.whl"], {"glibc": ">=2.18"}),
        (["x-2.tar.gz"], None),
    ],
)
def test_pythons_and_glibc_come_from_the_tags(names: list[str], requires: object) -> None:
    (found,) = proposals("x", [], told(*names))
    assert row_of(found, "python", "today").get("requires") == requires


def test_a_source_archive_is_said_to_be_one() -> None:
    (found,) = proposals("horovod", ["0.28.0"], told("horovod-0.28.1.tar.gz"))
    assert (
        "no wheel: it is compiled from its source archive"
        in row_of(found, "python", "today")["notes"]
    )


def test_a_wheel_says_which_exact_versions_it_asks_for() -> None:
    metadata = {
        "requires_dist": [
            "filelock",
            'nvidia-nccl-cu12==2.26.2; platform_system == "Linux"',
            'optree>=0.13; extra == "optree"',
            'pinned==1; extra == "x"',
        ]
    }
    assert exact_requirements(metadata) == ("nvidia-nccl-cu12==2.26.2",)
    assert exact_requirements({}) == ()


def test_metadata_is_asked_for_the_newest_python() -> None:
    assert platform_of(newest()) == ("3.13", "manylinux_2_28_x86_64")
    (source,) = proposals("x", [], told("x-2.tar.gz"))
    assert platform_of(source) == ("", "")


def test_proposed_rows_are_rows_of_the_catalog(small: Overlay) -> None:
    """The proposed rows are valid releases when they are pasted unchanged."""
    text = (small.root / "dockerfiles/components/alpha/component.yaml").read_text()
    alpha = small.catalog.components["alpha"]
    rows = as_text(alpha, [row_of(newest(), "python", "2026-11-21")], None)
    assert rows.startswith("# for `releases:` in ")
    python = "name: python\ntitle: P\nseconds: 1\nsuites: [python]\nreleases:\n"
    python += "  - {version: '3.13', origin: x, source: the test}\n"
    small.component("python", python)
    small.component("alpha", text.rstrip() + "\n" + rows + "\n")
    added = small.catalog.components["alpha"].releases[-1]
    assert (added.version, added.wheels) == ("2.7.0", {"torch": "2.7.0"})
    assert added.requires == {"python": ("3.9", "3.13"), "glibc": (">=2.28",)}


TABLE = """\
name: torch
title: T
seconds: 1
suites: [torch]
releases: []
rows:
  index: {{version: "{{version}}", wheels: {{torch: "{{wheel}}"}}, index: "https://i.example/{{index}}",
    origin: x, source: x}}
  pypi: {{version: "{{version}}", requires: {{python: "{{python}}", glibc: ">={{glibc}}"}},
    wheels: {{torch: "{{wheel}}", triton: "{{triton}}"}}, origin: x, source: "{{source}}"{more}}}
"""


def test_proposed_lines_are_lines_of_a_table(small: Overlay) -> None:
    """In the kind of line that stands for pip's default index, with what its columns can say."""
    small.component("torch", TABLE.format(more=""))
    columns = "kind,version,wheel,index,python,glibc,triton,source\n"
    path = small.write("dockerfiles/components/torch/releases.csv", columns)
    torch, table = small.catalog.components["torch"], read_table(small.payload, "torch")
    lines = as_text(torch, [row_of(newest(), "python", "2026-11-21")], table).splitlines()
    assert lines[0].endswith("dockerfiles/components/torch/releases.csv, to be completed")
    assert lines[1].startswith("# 2.7.0: file names do not say what else it asks for")
    assert lines[2] == columns.strip()
    assert lines[3].startswith('pypi,2.7.0,2.7.0,,3.9 3.13,2.28,,"the index that pip is set to, ')
    path.write_text("\n".join(lines[2:]))
    python = "name: python\ntitle: P\nseconds: 1\nsuites: [python]\nreleases:\n"
    small.component("python", python + "  - {version: '3.13', origin: x, source: the test}\n")
    (added,) = small.catalog.components["torch"].releases
    assert added.requires == {"python": ("3.9", "3.13"), "glibc": (">=2.28",)}
    assert added.source == row_of(newest(), "python", "2026-11-21")["source"]


def test_columns_with_keys_are_left_to_a_maintainer(small: Overlay) -> None:
    small.component("torch", TABLE.format(more="") + "keys: {source: {page: a page}}\n")
    columns = "kind,version,wheel,index,python,glibc,triton,source\n"
    small.write("dockerfiles/components/torch/releases.csv", columns)
    torch, table = small.catalog.components["torch"], read_table(small.payload, "torch")
    lines = as_text(torch, [row_of(newest(), "python", "2026-11-21")], table).splitlines()
    assert lines[3] == "pypi,2.7.0,2.7.0,,3.9 3.13,2.28,,"


def test_a_wheel_that_no_kind_of_line_has_is_proposed_for_the_yaml(small: Overlay) -> None:
    small.component("torch", TABLE.format(more="").replace("torch: ", "other: "))
    small.write(
        "dockerfiles/components/torch/releases.csv",
        "kind,version,wheel,index,python,glibc,triton,source\n",
    )
    torch, table = small.catalog.components["torch"], read_table(small.payload, "torch")
    assert as_text(torch, [row_of(newest(), "python", "x")], table).startswith(
        "# for `releases:` in "
    )


def test_nothing_new_is_said(small: Overlay) -> None:
    alpha = small.catalog.components["alpha"]
    assert as_text(alpha, [], None) == "# alpha: the catalog has all that the index lists"


def test_the_projects_of_a_component_are_those_with_its_versions(small: Overlay) -> None:
    alpha = small.catalog.components["alpha"]
    assert projects_of(alpha) == {"alpha": set()}
    text = (small.root / "dockerfiles/components/alpha/component.yaml").read_text()
    other = text.replace(
        "    origin: alpha's", "    wheels: {other: '3.11', more: '1'}\n    origin: alpha's"
    )
    small.component("alpha", other)
    assert projects_of(small.catalog.components["alpha"]) == {"other": {"3.11"}}
    own = other.replace("more: '1'", "alpha: '3.11+cu1'")
    small.component("alpha", own)
    assert projects_of(small.catalog.components["alpha"]) == {"alpha": {"3.11+cu1"}}
