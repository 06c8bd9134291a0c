"""Test that component and OS files become a Catalog, or all problems of all files at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from imagegen.errors import ConfigError, Problem
from imagegen.model.catalog import COMPILER
from imagegen.resolver.candidates import Space

if TYPE_CHECKING:
    from imagegen.model.catalog import Catalog
    from unit.conftest import Overlay

EPSILON = """\
name: epsilon
title: Epsilon
seconds: 1.5
suites: [epsilon]
releases:
  - version: "1.0"
    origin: somewhere
    source: the test
"""


def problems(overlay: Overlay) -> tuple[Problem, ...]:
    with pytest.raises(ConfigError) as caught:
        _ = overlay.catalog
    return caught.value.problems


def test_files_become_releases_with_their_lines(overlay: Overlay) -> None:
    catalog = overlay.catalog
    assert sorted(catalog.os) == ["debian12", "debian13"]
    assert sorted(catalog.components) == ["alpha", "beta", "delta", "gamma"]
    beta = catalog.components["beta"]
    assert (beta.needs, beta.seconds, beta.suites) == (("alpha",), 75.0, ("beta",))
    assert [(r.version, r.line) for r in beta.releases] == [("1.13.1", 8), ("2.6.0", 12)]
    assert beta.releases[0].requires == {"os": ("debian12",), "alpha": (">=3",)}
    assert catalog.components["delta"].variants == ("core",)


def test_numbers_of_a_contract_are_numbers(overlay: Overlay) -> None:
    assert overlay.catalog.components["beta"].contract == {
        "caps": ["IPC_LOCK"],
        "ulimits": {"memlock": -1},
        "network": "host",
        "shm_bytes": 128,
    }


def test_versions_keep_their_text(overlay: Overlay) -> None:
    overlay.component("epsilon", EPSILON.replace('"1.0"', "11.10"))
    assert overlay.catalog.components["epsilon"].releases[0].version == "11.10"


def test_an_unknown_key_names_the_known_ones_and_the_near_miss(overlay: Overlay) -> None:
    overlay.component("epsilon", EPSILON.replace("title:", "titel:"))
    unknown, missing = sorted(problems(overlay), key=lambda problem: problem.text, reverse=True)
    assert (unknown.text, unknown.line, unknown.key) == ("unknown key", 2, "titel")
    assert unknown.hint == "did you mean `title`?"
    assert missing.text == "key `title` is missing"


def test_errors_in_two_files_are_told_in_one_run(overlay: Overlay) -> None:
    overlay.component("epsilon", EPSILON.replace("seconds: 1.5", "seconds: soon"))
    overlay.os("debian14", "14", extra="colour: red\n")
    found = {(problem.key, problem.line) for problem in problems(overlay)}
    assert found == {("seconds", 3), ("colour", 10)}


def test_a_component_in_a_folder_of_another_name_is_refused(overlay: Overlay) -> None:
    overlay.component("zeta", EPSILON)
    (problem,) = problems(overlay)
    assert problem.text == "`epsilon` is in `zeta`, so it would not be found by its name"
    assert problem.hint == "rename it to `epsilon`, or correct `name`"


def test_an_os_in_a_file_of_another_name_is_refused(overlay: Overlay) -> None:
    overlay.os("debian14", "14").rename(overlay.root / "dockerfiles/os/sid.yaml")
    (problem,) = problems(overlay)
    assert (problem.key, problem.hint) == ("id", "rename it to `debian14.yaml`, or correct `id`")


def test_a_version_that_is_none_is_refused_with_its_line(overlay: Overlay) -> None:
    overlay.component("epsilon", EPSILON.replace('"1.0"', "newest"))
    (problem,) = problems(overlay)
    assert (problem.text, problem.line) == ("`newest` is not a version", 6)
    assert problem.key == "releases[0].version"


def test_names_that_nothing_has_are_refused(overlay: Overlay) -> None:
    requires = "    requires: {os: debian99, omega: any}\n"
    overlay.component("epsilon", EPSILON.replace("releases", "needs: [psi]\nreleases") + requires)
    assert {problem.text for problem in problems(overlay)} == {
        "requires the OS `debian99`, which does not exist",
        "names the component `omega`, which does not exist",
        "names the component `psi`, which does not exist",
    }


def test_a_suite_that_is_not_there_is_refused(overlay: Overlay) -> None:
    overlay.component("epsilon", EPSILON)
    (overlay.root / "validate/suites/test_epsilon.py").unlink()
    (problem,) = problems(overlay)
    assert problem.text == "names the suite `epsilon`, which does not exist"
    assert problem.hint == "write validate/suites/test_epsilon.py, or correct the name"


CLAIMS = """\
role: interpreter
request: {keys: {eps: small}}
checks: {short_names: [ep]}
launch: {transports: [wire], accels: [boost]}
"""


def test_what_two_components_claim_is_refused(overlay: Overlay) -> None:
    overlay.component("epsilon", EPSILON + CLAIMS)
    assert overlay.catalog.with_role("interpreter") == "epsilon"
    overlay.component("zeta", EPSILON.replace("epsilon", "zeta") + CLAIMS)
    found = problems(overlay)
    assert [problem.text for problem in found] == [
        "role `interpreter` belongs to `epsilon` already",
        "request key `eps` belongs to `epsilon` already",
        "transport `wire` belongs to `epsilon` already",
        "acceleration `boost` belongs to `epsilon` already",
        "suite name `ep` belongs to `epsilon` already",
    ]
    assert all("components/zeta/" in problem.file for problem in found)
    assert all("components/epsilon/" in problem.hint for problem in found)


def test_the_name_of_a_component_is_no_other_s_key(overlay: Overlay) -> None:
    overlay.component("epsilon", EPSILON + "request: {keys: {beta: any}}\n")
    (problem,) = problems(overlay)
    assert problem.text == "request key `beta` belongs to `beta` already"


def test_a_request_takes_components_in_the_order_of_the_search(overlay: Overlay) -> None:
    overlay.component("epsilon", EPSILON + 'request: {order: "2", always: true, values: [x]}\n')
    zeta = EPSILON.replace("epsilon", "zeta") + 'request: {order: "1", always: true}\n'
    overlay.component("zeta", zeta)
    eta = EPSILON.replace("epsilon", "eta") + "request: {always: true}\n"
    overlay.component("eta", eta)
    assert overlay.catalog.search_order == {"zeta": 1, "epsilon": 2}
    assert overlay.catalog.in_every_image == ("zeta", "epsilon", "eta")
    assert overlay.catalog.request_values == ("x",)


def test_a_layer_of_which_nothing_is_said_has_a_size(overlay: Overlay) -> None:
    overlay.component("epsilon", EPSILON)
    assert overlay.catalog.components["epsilon"].megabytes == {"": 100.0}


@pytest.mark.parametrize("value", ["1\\nRUN x", "1'", '1\\"', "$x", "`x`", "1;x", "1 && x", "1\\n"])
@pytest.mark.parametrize("key", ["version", "apt", "wheels", "build_apt"])
def test_a_value_that_could_be_a_command_never_enters(
    overlay: Overlay, key: str, value: str
) -> None:
    row = f'"{value}"' if key == "version" else f'{{pkg: "{value}"}}'
    text = EPSILON.replace('  - version: "1.0"', f"  - {key}: {row}")
    overlay.component("epsilon", text if key == "version" else text + '    version: "1.0"\n')
    (problem,) = problems(overlay)
    assert problem.line == 6
    assert problem.text.startswith("the value is not ")


@pytest.mark.parametrize("text", ["a b", "a;b", "$a", "`a`", 'a\\"', "a'", "a\\nRUN x"])
@pytest.mark.parametrize("line", ['env: {{A: "{}"}}', 'path: ["/{}"]', 'entrypoint: "/{}"'])
def test_environment_paths_and_entrypoint_are_plain_words(
    overlay: Overlay, line: str, text: str
) -> None:
    overlay.component("epsilon", EPSILON + line.format(text) + "\n")
    (problem,) = problems(overlay)
    assert problem.line == 9


def test_hidden_files_are_no_components(overlay: Overlay) -> None:
    overlay.write("dockerfiles/components/.git/component.yaml", "nonsense")
    overlay.write("dockerfiles/os/.debian12.yaml.swp", "nonsense")
    assert len(overlay.catalog.components) == 4


def test_a_file_with_an_error_is_not_also_called_missing(overlay: Overlay) -> None:
    overlay.component("alpha", "name: alpha\ntitle: Alpha\nsuites: [alpha]\nreleases: []\n")
    (problem,) = problems(overlay)
    assert problem.text == "key `seconds` is missing"


def test_the_compiler_of_an_os_is_the_row_without_a_rank(overlay: Overlay) -> None:
    row = """
  - version: "{0}"
    {1}
    requires: {{os: debian12}}
    provides: {{compiler: "{0}"}}
    origin: somewhere
    source: the test
"""
    rows = row.format("12.2.0", "aliases: 12.2.1") + row.format("11.3.0", 'rank: "1"')
    overlay.component("epsilon", EPSILON.partition("\n  - ")[0] + rows)
    found = overlay.catalog.compilers
    assert {os: release.version for os, release in found.items()} == {"debian12": "12.2.0"}
    space = Space(overlay.catalog)
    systems = {one.version: one.provides["compiler"] for one in space.candidates["os"]}
    assert systems == {"debian12": "12.2.0", "debian13": "unknown"}
    assert [*systems] == ["debian12", "debian13"], "one without a known compiler comes last"


def test_each_os_that_images_are_built_on_has_one_compiler(shipped: Catalog) -> None:
    own = [
        (os, release.row)
        for component in shipped.components.values()
        for release in component.releases
        if COMPILER in release.provides and not release.rank
        for os in release.requires["os"]
    ]
    assert len({os for os, _ in own}) == len(own), own
    assert {*shipped.buildable.os} <= {*shipped.compilers}


UNCERTAIN = """\
    provides: {part: "1.2", other: unknown}
    uncertain: part
"""


def test_a_value_may_be_uncertain(overlay: Overlay) -> None:
    overlay.component("epsilon", EPSILON + UNCERTAIN)
    (release,) = overlay.catalog.components["epsilon"].releases
    assert (release.provides["part"], release.uncertain) == ("1.2", ("part",))
    space = Space(overlay.catalog)
    assert space.mask("part", ("1.2",)) != 0
    assert space.mask("part", ("1.3",)) == 0
    assert space.mask("part", ("1.3",), True) == space.every("part"), "any, if unknown is allowed"


@pytest.mark.parametrize("name", ["other", "third"])
def test_what_has_no_value_is_not_uncertain(overlay: Overlay, name: str) -> None:
    overlay.component("epsilon", EPSILON + UNCERTAIN.replace(": part", f": {name}"))
    (problem,) = problems(overlay)
    assert problem.text == f"`{name}` has no value in `provides` that could be uncertain"
    assert problem.key == "releases[0].uncertain"
