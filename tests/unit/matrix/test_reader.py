"""Test that matrix files become cells, or all problems at once with their lines."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from imagegen.errors import ConfigError, NothingSelectedError, Problem
from imagegen.matrix.reader import matrix_names, read_matrix
from imagegen.model.cell import Omission, SizeBudget, User
from unit.conftest import SMALL

if TYPE_CHECKING:
    from imagegen.model.cell import Cell
    from unit.conftest import Overlay


def cells(overlay: Overlay, text: str) -> dict[str, Cell]:
    return {cell.name: cell for cell in overlay.read(text).cells}


def problems(overlay: Overlay, text: str) -> tuple[Problem, ...]:
    with pytest.raises(ConfigError) as caught:
        overlay.read(text)
    return caught.value.problems


def problem(overlay: Overlay, text: str) -> Problem:
    (only,) = problems(overlay, text)
    return only


def test_axes_become_cells_in_their_order(overlay: Overlay) -> None:
    found = cells(overlay, SMALL)
    assert list(found) == ["debian12-core", "debian12-none", "debian13-core", "debian13-none"]
    first = found["debian12-core"]
    assert first.id == "small/debian12-core"
    assert {want.component: want.constraint for want in first.wants} == {
        "alpha": "any",
        "beta": "any",
        "gamma": "0.28.1",
        "os": "debian12",
        "delta": "core",
    }


def test_a_component_is_omitted_where_its_rule_says_so_with_the_reason(overlay: Overlay) -> None:
    found = cells(overlay, SMALL)
    assert Omission("gamma", "gamma does not compile there") in found["debian13-core"].omitted
    assert found["debian12-core"].omitted == ()
    assert "gamma" not in [want.component for want in found["debian13-core"].wants]


def test_none_omits_a_component_and_says_where_that_stands(overlay: Overlay) -> None:
    (omission,) = cells(overlay, SMALL)["debian12-none"].omitted
    assert omission.component == "delta"
    assert omission.reason.startswith("`delta: none` in ")


def test_who_asked_is_the_axis_or_the_components_section(overlay: Overlay) -> None:
    wants = {w.component: w.asked_by for w in cells(overlay, SMALL)["debian12-core"].wants}
    assert wants["os"].endswith("small.yaml, axis `os`")
    assert wants["beta"].endswith("small.yaml, components `beta`")


def test_an_exclude_takes_its_cells_away(overlay: Overlay) -> None:
    text = SMALL + "exclude:\n  - {os: debian13, delta: core, reason: not wanted}\n"
    assert list(cells(overlay, text)) == ["debian12-core", "debian12-none", "debian13-none"]


def test_an_include_adds_a_cell_over_the_defaults(overlay: Overlay) -> None:
    text = SMALL + (
        "defaults: {delta: none}\n"
        "include:\n  - {os: debian12, beta: 1.13.1, gamma: none, tag: 'imagegen/small:extra'}\n"
    )
    extra = overlay.read(text).cells[-1]
    assert extra.values == {"delta": "none", "os": "debian12", "beta": "1.13.1", "gamma": "none"}
    assert extra.tag == "imagegen/small:extra"
    assert {omission.component for omission in extra.omitted} == {"delta", "gamma"}


def test_owner_and_expiry_travel_with_the_matrix(overlay: Overlay) -> None:
    matrix = overlay.read(SMALL + "owner: team a\nexpires: 2030-01-31\n")
    assert (matrix.owner, matrix.expires) == ("team a", "2030-01-31")


def test_an_exclude_that_matches_nothing_is_an_error_with_its_line(overlay: Overlay) -> None:
    text = SMALL + "exclude:\n  - {os: debian13, delta: '44.0', reason: why}\n"
    found = problem(overlay, text)
    assert found.text == "this exclude matches no cell"
    assert (found.key, found.line) == ("exclude[0]", SMALL.count("\n") + 2)
    assert found.evidence == ("os: debian12, debian13", "delta: core, none")


def test_excludes_that_leave_no_cell_are_an_error(overlay: Overlay) -> None:
    rows = "".join(f"  - {{os: {os}, reason: why}}\n" for os in ("debian12", "debian13"))
    found = problem(overlay, SMALL + "exclude:\n" + rows)
    assert found.text == "the excludes leave no cell of this matrix"
    assert found.key == "exclude"


def test_an_exclude_without_a_reason_is_refused(overlay: Overlay) -> None:
    found = problem(overlay, SMALL + "exclude:\n  - {os: debian13}\n")
    assert found.text == "key `reason` is missing"


def test_an_exclude_by_what_is_no_axis_names_the_near_miss(overlay: Overlay) -> None:
    found = problems(overlay, SMALL + "exclude:\n  - {oss: debian13, reason: why}\n")
    assert found[0].text == "`oss` is no axis of this matrix"
    assert found[0].hint == "did you mean `os`?"


@pytest.mark.parametrize("row", ["{os: [debian12], reason: x}", "{os: {a: b}, reason: x}"])
def test_an_exclude_of_anything_but_words_is_refused(overlay: Overlay, row: str) -> None:
    found = problem(overlay, SMALL + f"exclude:\n  - {row}\n")
    assert found.key == "exclude[0].os"
    assert found.text.startswith("should be text")


def test_a_rule_that_speaks_of_no_axis_is_refused_with_the_near_miss(overlay: Overlay) -> None:
    (found,) = problems(overlay, SMALL.replace("when: {os:", "when: {oss:"))
    assert found.text == "`oss` is no axis of this matrix"
    assert found.key == "components.gamma.omit[0].when.oss"
    assert (found.line, found.hint) == (12, "did you mean `os`?")


def test_a_misspelt_axis_names_the_near_miss(overlay: Overlay) -> None:
    found = problem(overlay, SMALL.replace("  delta: [", "  dleta: [").replace("-{delta}", ""))
    assert str(found) == (
        f"error: {overlay.root}/matrices/small.yaml:5: `axes.dleta`: "
        "axis `dleta` is neither `os` nor a component of the catalog\n"
        "  known: os, alpha, beta, delta, gamma\n"
        "\n"
        "hint: did you mean `delta`?"
    )


def test_an_unknown_component_names_the_known_ones(overlay: Overlay) -> None:
    found = problem(overlay, SMALL + "  omega: any\n")
    assert found.text == "component `omega` is neither `os` nor a component of the catalog"
    assert found.evidence == ("known: os, alpha, beta, delta, gamma",)
    assert found.hint == "add dockerfiles/components/omega/component.yaml, or correct the name"


def test_an_unknown_version_names_the_known_ones(overlay: Overlay) -> None:
    found = problem(overlay, SMALL.replace("beta: any", "beta: 1.12"))
    assert found.text == "`1.12` is not a release of component `beta`"
    assert (found.evidence, found.line) == (("known releases: 1.13.1, 2.6.0",), 8)


def test_an_unknown_variant_names_the_known_ones_and_the_near_miss(overlay: Overlay) -> None:
    found = problem(overlay, SMALL.replace("[core,", "[corr,"))
    assert found.evidence == ("known releases: 44.0, 56.1", "known variants: core")
    assert (found.key, found.hint) == ("axes.delta[0]", "did you mean `core`?")


def test_an_unknown_os_names_the_known_ones(overlay: Overlay) -> None:
    found = problem(overlay, SMALL.replace("[debian12, debian13]", "[debian13, debian31]"))
    assert found.text == "`debian31` is not an OS of the catalog"
    assert found.evidence == ("known: debian12, debian13",)
    assert (found.line, found.key) == (4, "axes.os[1]")


@pytest.mark.parametrize("value", ['"1\\n"', '"1\\nRUN x"', "'1\"'", '"1\'"', "$x", "'`x`'", "1;x"])
@pytest.mark.parametrize("place", ["axes", "components", "when", "include", "exclude"])
def test_a_value_that_could_be_a_command_is_refused(
    overlay: Overlay, place: str, value: str
) -> None:
    text = {
        "axes": SMALL.replace("[core,", f"[{value},"),
        "components": SMALL.replace("beta: any", f"beta: {value}"),
        "when": SMALL.replace("{os: debian13}", f"{{os: {value}}}"),
        "include": SMALL + f"include:\n  - {{os: debian12, delta: {value}}}\n",
        "exclude": SMALL + f"exclude:\n  - {{delta: {value}, reason: x}}\n",
    }[place]
    assert any(place in found.key and found.line > 1 for found in problems(overlay, text))


@pytest.mark.parametrize("value", ["x\\n", "x\\nRUN y", "x'", 'x\\"', "$x", "`x`", "x;y", "x y"])
@pytest.mark.parametrize("place", ["tag", "include[0].tag"])
def test_a_tag_that_could_be_a_command_is_refused(overlay: Overlay, place: str, value: str) -> None:
    tag = f'"imagegen/small:{value}"'
    line = f"tag: {tag}"
    text = SMALL.replace('tag: "imagegen/small:{os}-{beta}-{delta}"', line)
    if place != "tag":
        text = SMALL + f"include:\n  - {{os: debian12, delta: '44.0', {line}}}\n"
    assert problem(overlay, text).key == place


@pytest.mark.parametrize("value", ["a\\nb", "a\\u0007"])
def test_a_reason_is_one_line(overlay: Overlay, value: str) -> None:
    found = problem(overlay, SMALL.replace("gamma does not compile there", f'"{value}"'))
    assert found.key == "components.gamma.omit[0].reason"


def test_a_placeholder_that_nothing_fills_is_refused(overlay: Overlay) -> None:
    found = problem(overlay, SMALL.replace("{delta}", "{dleta}"))
    assert found.text == "`{dleta}` is neither an axis nor a component here"
    assert found.hint == "did you mean `{delta}`?"


def test_a_placeholder_of_an_include_is_checked_too(overlay: Overlay) -> None:
    row = "include:\n  - {os: debian12, delta: '44.0', tag: 'imagegen/small:{dleta}'}\n"
    found = problem(overlay, SMALL + row)
    assert (found.key, found.hint) == ("include[0].tag", "did you mean `{delta}`?")


def test_an_include_that_cannot_fill_the_tag_is_refused(overlay: Overlay) -> None:
    found = problem(overlay, SMALL + "include:\n  - {delta: '44.0'}\n")
    assert found.text == "`{os}` is neither an axis nor a component here"
    assert (found.key, found.line) == ("include[0]", SMALL.count("\n") + 2)


def test_a_rule_that_holds_for_no_cell_is_refused(overlay: Overlay) -> None:
    found = problem(overlay, SMALL.replace("when: {os: debian13}", "when: {os: debian14}"))
    assert found.text == "this condition holds for no cell"


def test_braces_that_do_not_match_are_refused(overlay: Overlay) -> None:
    found = problem(overlay, SMALL.replace("-{delta}", "-{delta"))
    assert (found.text, found.key) == ("braces do not match", "tag")


def test_two_cells_of_one_name_are_refused(overlay: Overlay) -> None:
    found = problems(overlay, SMALL.replace("[core, none]", "[core, core]"))
    assert found[0].text == "two cells are named `debian12-core`"


def test_a_matrix_in_a_file_of_another_name_is_refused(overlay: Overlay) -> None:
    found = problem(overlay, SMALL.replace("name: small", "name: large"))
    assert found.text == "`large` is not the name of its file"


def test_all_errors_of_a_file_are_told_at_once(overlay: Overlay) -> None:
    text = SMALL.replace("debian12, d", "debian99, d").replace("beta: any", "beta: '7'")
    found = problems(overlay, text)
    assert [(p.key, p.line) for p in found] == [("axes.os[0]", 4), ("components.beta", 8)]


def test_a_missing_matrix_names_the_known_ones(overlay: Overlay) -> None:
    overlay.matrix(SMALL)
    with pytest.raises(NothingSelectedError) as caught:
        read_matrix(overlay.payload, "smal", overlay.catalog)
    assert str(caught.value) == (
        "error: there is no matrix `smal`\n  known matrices: small\n\nhint: did you mean `small`?"
    )


def test_a_matrix_can_be_named_by_its_path(overlay: Overlay) -> None:
    path = overlay.matrix(SMALL)
    assert len(read_matrix(overlay.payload, str(path), overlay.catalog).cells) == 4


def test_lock_files_are_no_matrices(overlay: Overlay) -> None:
    overlay.matrix(SMALL)
    overlay.write("matrices/small.lock.yaml", "a: b\n")
    overlay.write("matrices/notes.txt", "a\n")
    assert matrix_names(overlay.payload) == ("small",)


def test_a_size_budget_is_of_every_cell(overlay: Overlay) -> None:
    matrix = overlay.read(SMALL + "size_budget: {factor: 1.5, action: fail}\n")
    assert {cell.size_budget for cell in matrix.cells} == {SizeBudget(1.5, 0, True)}


@pytest.mark.parametrize(
    "row", ["factor: 0.5", "size: 2 GiB", "size: 20", "action: stop", "largest: 1 GB"]
)
def test_a_size_budget_that_means_nothing_is_refused(overlay: Overlay, row: str) -> None:
    found = problem(overlay, SMALL + f"size_budget: {{{row}}}\n")
    assert found.key.startswith("size_budget")


def test_the_user_of_a_matrix_is_of_every_cell(overlay: Overlay) -> None:
    matrix = overlay.read(SMALL + "user: {name: mpiuser, uid: 1000}\n")
    assert {cell.user for cell in matrix.cells} == {User("mpiuser", 1000)}
    assert {cell.user for cell in overlay.read(SMALL).cells} == {None}


@pytest.mark.parametrize(
    ("row", "key", "text"),
    [
        ("name: Mpi User, uid: 1000", "user.name", "the value is not the name of an account"),
        ("name: root, uid: 1000", "user.name", "`root` is an account of the system"),
        ("name: www-data, uid: 1000", "user.name", "`www-data` is an account of the system"),
        ("name: video, uid: 1000", "user.name", "`video` is an account of the system, or a group"),
        ("name: systemd-x, uid: 1000", "user.name", "`systemd-x` is an account of the system"),
        ("name: mpi, uid: 0", "user.uid", "the value is not a number from 1 on"),
        ("name: mpi, uid: -1", "user.uid", "the value is not a number from 1 on"),
        ("name: mpi, uid: 33", "user.uid", "33 is the number of an account of the system"),
        ("name: mpi, uid: 65534", "user.uid", "65534 is no number of a user"),
        ("name: mpi, uid: 4294967295", "user.uid", "4294967295 is no number of a user"),
        ("name: mpi, uid: 1000, gid: 1000", "user.gid", "unknown key"),
        ("name: mpi", "user", "key `uid` is missing"),
        ("uid: 1000", "user", "key `name` is missing"),
    ],
)
def test_a_user_that_no_image_can_have_is_refused_with_its_line(
    row: str, key: str, text: str, overlay: Overlay
) -> None:
    found = problem(overlay, SMALL + f"user: {{{row}}}\n")
    assert found.key == key
    assert found.text.startswith(text)
    assert found.line == SMALL.count("\n") + 1
    assert found.hint


def test_a_user_is_a_name_with_a_number(overlay: Overlay) -> None:
    found = problem(overlay, SMALL + "user: mpiuser\n")
    assert found.key == "user"


def test_too_many_cells_are_counted_before_they_are_made(overlay: Overlay) -> None:
    many = ", ".join(f'"{number}"' for number in range(1000))
    axes = "".join(f"  {name}: [{many}]\n" for name in ("alpha", "beta", "gamma"))
    text = f"name: many\ntag: x/y:{{alpha}}\naxes:\n{axes}components: {{os: debian12}}\n"
    overlay.write("matrices/many.yaml", text)
    begun = time.monotonic()
    with pytest.raises(ConfigError) as caught:
        read_matrix(overlay.payload, "many", overlay.catalog)
    assert time.monotonic() - begun < 5
    (problem,) = caught.value.problems
    assert problem.text.startswith("1000000000 cells are too many; a matrix has at most 50000")
    assert problem.evidence == ("alpha 1000 x beta 1000 x gamma 1000, and 0 by `include`",)


@pytest.mark.parametrize("name", ["", " ", "x" * 5000, "\udcff", "nosuch.yaml", "\udcff.yaml"])
def test_a_name_that_is_no_matrix_selects_nothing(name: str, overlay: Overlay) -> None:
    with pytest.raises(NothingSelectedError):
        read_matrix(overlay.payload, name, overlay.catalog)
