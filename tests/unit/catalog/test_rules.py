"""Test that each rule has a name, a file and a place on the page, and that texts name rules."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from imagegen.catalog.rules import read_rules, rule_names
from imagegen.config.payload import Payload
from imagegen.errors import ConfigError
from imagegen.model.catalog import rules_named
from unit.conftest import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable

    from unit.conftest import Ended, Overlay

    Run = Callable[..., Ended]

SHIPPED = Payload((REPOSITORY,), (REPOSITORY,))
RULE = "what: One at a time.\nwhy: Two collide.\nsource: [https://example.org]\n"
NUMBER = re.compile(r"\bR\d+[a-z]?\b")


def texts() -> dict[str, str]:
    """Return all texts for users and maintainers, by path, without those of third parties."""
    folders = ("dockerfiles", "matrices", "imagegen", "docs", "tests")
    files = [path for folder in folders for path in (REPOSITORY / folder).rglob("*")]
    files += [REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    ends = (".py", ".yaml", ".csv", ".j2", ".md", ".json", ".sh", "Dockerfile")
    own = [path for path in files if path.name.endswith(ends) and path.is_file()]
    return {str(path.relative_to(REPOSITORY)): path.read_text() for path in own}


def test_every_rule_that_is_named_exists_and_every_rule_is_named() -> None:
    places = {
        path: text
        for path, text in texts().items()
        if path.startswith(("dockerfiles", "matrices", "imagegen"))
    }
    named = {name for text in places.values() for name in rules_named(text)}
    filled_in = {name for name in named if "{" in name}
    assert named - filled_in == {*rule_names(SHIPPED)}


def test_no_text_has_a_number_for_a_rule() -> None:
    assert [path for path, text in texts().items() if NUMBER.search(text)] == []


def test_names_are_plain_and_sentences_end() -> None:
    for rule in read_rules(SHIPPED):
        assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9.]+)+", rule.name)
        assert rule.what.endswith("."), rule.name
        assert rule.why.endswith("."), rule.name
        for source in rule.source:
            assert source.startswith("https://") or (REPOSITORY / source).is_file(), source


def test_a_rule_is_printed_by_its_name(run: Run) -> None:
    said = run("catalog", "--rule", "two-nccls").out.splitlines()
    assert said[0] == ("rule two-nccls: PyTorch uses the NCCL of its wheel, not that of the image.")
    assert said[1].startswith("why: ")
    assert said[2].startswith("source: https://")
    data = json.loads(run("catalog", "--rule", "two-nccls", "--format", "json").out)
    assert data.keys() == {"name", "what", "why", "source"}


def test_all_rules_are_listed(run: Run) -> None:
    said = run("catalog", "--rules").out
    assert said.splitlines()[0].split() == ["rule", "what", "it", "says"]
    assert all(f"\n{name}  " in said for name in rule_names(SHIPPED))
    data = json.loads(run("catalog", "--rules", "--format", "json").out)
    assert [one["name"] for one in data] == [*rule_names(SHIPPED)]


def test_an_unknown_rule_names_the_nearest(run: Run) -> None:
    ended = run("catalog", "--rule", "two-ncls")
    assert (ended.code, ended.err) == (
        3,
        "error: there is no rule `two-ncls`\n\nhint: did you mean `two-nccls`?\n",
    )


def alpha(overlay: Overlay, old: str, new: str) -> None:
    path = overlay.root / "dockerfiles/components/alpha/component.yaml"
    path.write_text(path.read_text().replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("seconds: 10", "seconds: 10\nrules: {os: it is so (rule one-at-a-time)}"),
        ("    origin: alpha's", "    notes: [it is so (rule one-at-a-time)]\n    origin: alpha's"),
    ],
)
def test_a_text_of_a_component_names_rules_that_exist(overlay: Overlay, old: str, new: str) -> None:
    alpha(overlay, old, new)
    with pytest.raises(ConfigError) as caught:
        _ = overlay.catalog
    (problem,) = caught.value.problems
    assert problem.text == "names the rule `one-at-a-time`, which does not exist"
    assert problem.file.endswith("alpha/component.yaml")
    overlay.write("dockerfiles/rules/one-at-a-time.yaml", RULE)
    assert overlay.catalog.rules == ("one-at-a-time",)


def test_a_note_of_an_os_names_rules_that_exist(overlay: Overlay) -> None:
    overlay.os("debian12", "12", "notes: [old (rule one-at-a-time)]\n")
    with pytest.raises(ConfigError, match="names the rule `one-at-a-time`, which does not exist"):
        _ = overlay.catalog


def test_a_note_of_a_matrix_names_rules_that_exist(overlay: Overlay) -> None:
    text = (
        "name: small\ntag: imagegen/small:{os}\naxes: {os: [debian12]}\ncomponents: {alpha: any}\n"
    )
    overlay.read(text + "notes: [good]\n")
    with pytest.raises(ConfigError) as caught:
        overlay.read(text + "notes: [good, it is so (rule one-at-a-time)]\n")
    (problem,) = caught.value.problems
    assert (problem.line, problem.key) == (5, "notes[1]")
    overlay.write("dockerfiles/rules/one-at-a-time.yaml", RULE)
    overlay.read(text + "notes: [good, it is so (rule one-at-a-time)]\n")


def test_every_wrong_rule_is_told(overlay: Overlay) -> None:
    overlay.write("dockerfiles/rules/one.yaml", RULE.replace("why", "reason"))
    overlay.write("dockerfiles/rules/two.yaml", "- a list\n")
    with pytest.raises(ConfigError) as caught:
        read_rules(overlay.payload)
    assert {problem.file.rpartition("/")[2] for problem in caught.value.problems} == {
        "one.yaml",
        "two.yaml",
    }
