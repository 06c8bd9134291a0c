"""Test YAML files: their data, the lines of their values, and the errors for wrong files."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import pytest

from imagegen.config.document import Document, dotted
from imagegen.config.schema_check import check_schema
from imagegen.config.yaml_nodes import MAX_NODES
from imagegen.config.yamlfile import load
from imagegen.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@pytest.fixture
def read(tmp_path: Path) -> Any:
    def read_text(text: str | bytes, **options: bool) -> Document[Mapping[str, object]]:
        path = tmp_path / "cpu.yaml"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return load(path, "matrices/cpu.yaml", **options)

    return read_text


def problems(read: Any, text: str | bytes) -> tuple[Problem, ...]:
    with pytest.raises(ConfigError) as caught:
        read(text)
    return caught.value.problems


def test_scalars_keep_their_source_text(read: Any) -> None:
    data = read("a: 11.10\nb: 007\nc: no\nd: 2024-01-02\ne: true\nf:\ng: 1:30\nno: x\n").data
    assert data == {
        "a": "11.10",
        "b": "007",
        "c": "no",
        "d": "2024-01-02",
        "e": True,
        "f": None,
        "g": "1:30",
        "no": "x",
    }


def test_numbers_on_request(read: Any) -> None:
    assert read("a: 1.5\nb: 3\nc: x\n", as_text=False).data == {"a": 1.5, "b": 3, "c": "x"}


def test_lines_of_key_paths(read: Any) -> None:
    document = read("name: x\naxes:\n  os:\n    - debian12\n    - debian13\n\nlast: {in: 1}\n")
    assert document.line(["axes"]) == 2
    assert document.line(["axes", "os"]) == 3
    assert document.line(["axes", "os", 1]) == 5
    assert document.line(["axes", "os", 7]) == 3
    assert document.line(["last", "in"]) == 7
    assert document.line(["nowhere"]) == 1


def test_anchors_and_merge_keys(read: Any) -> None:
    document = read(
        "base: &b {os: debian12, rdma: none}\nother: &o {os: no, ssh: any}\n"
        "cell:\n  <<: [*b, *o]\n  rdma: any\n"
    )
    assert document.data["cell"] == {"os": "debian12", "ssh": "any", "rdma": "any"}
    assert document.line(["cell", "rdma"]) == 5
    assert document.line(["cell", "os"]) == 1


def test_duplicate_keys_all_at_once(read: Any) -> None:
    first, second = problems(read, "axes:\n  os: a\n  os: b\nname: x\nname: y\n")
    assert (first.line, first.key, first.text) == (3, "axes.os", "is there twice, first on line 2")
    assert (second.line, second.key) == (5, "name")
    assert first.hint


@pytest.mark.parametrize("text", ["", "# only words\n", "---\n"])
def test_empty(read: Any, text: str) -> None:
    (problem,) = problems(read, text)
    assert problem.text == "is empty"


def test_not_a_mapping(read: Any) -> None:
    (problem,) = problems(read, "- a\n- b\n")
    assert problem.text == "the top level is a list, not a mapping"


@pytest.mark.parametrize(
    ("text", "line"),
    [("a: [1,\nb: 2\n", 3), ("a: 1\n\tb: 2\n", 2), ("a: b: c\n", 1), ("a: 1\n---\nb: 2\n", 2)],
)
def test_not_yaml_says_where(read: Any, text: str, line: int) -> None:
    (problem,) = problems(read, text)
    assert (problem.text, problem.line) == ("is not YAML", line)
    assert problem.evidence[0].startswith("column ")


def test_control_characters_are_not_yaml(read: Any) -> None:
    (problem,) = problems(read, "a: x\x00y\n")
    assert problem.text == "is not YAML"
    assert "control characters" in problem.evidence[0]


def test_not_utf8(read: Any) -> None:
    (problem,) = problems(read, b"a: 1\nb: \xff\n")
    assert (problem.text, problem.line) == ("is not UTF-8", 2)


def test_byte_order_mark_is_welcome(read: Any) -> None:
    assert read(b"\xef\xbb\xbfa: 1\n").data == {"a": "1"}


def test_tags_and_odd_keys_are_refused(read: Any) -> None:
    first, second = problems(read, "a: !env HOME\n? [x, y]\n: 1\n")
    assert "tag `!env`" in first.text
    assert second.line == 2


@pytest.mark.parametrize("depth", [60, 200_000])
def test_deep_nesting_is_refused_not_a_crash(read: Any, depth: int) -> None:
    (problem,) = problems(read, "a: " + "[" * depth + "]" * depth)
    assert problem.text == "is nested too deeply"


def test_alias_bomb_is_refused(read: Any) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for level in range(1, 9):
        lines.append(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]")
    (problem,) = problems(read, "\n".join(lines))
    assert str(MAX_NODES) in problem.text


@pytest.mark.parametrize("text", ["a: &a [*a]\n", "a: &a {<<: *a}\n"])
def test_alias_of_itself_is_refused(read: Any, text: str) -> None:
    (problem,) = problems(read, text)
    assert "with its aliases expanded" in problem.text


def test_missing_file_names_the_near_miss(tmp_path: Path) -> None:
    (tmp_path / "cu113.yaml").touch()
    with pytest.raises(ConfigError) as caught:
        load(tmp_path / "cu13.yaml", "matrices/cu13.yaml")
    (problem,) = caught.value.problems
    assert problem.text == "no such file"
    assert problem.hint == "did you mean `cu113.yaml`?"


def test_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        load(tmp_path / "none" / "cu13.yaml", "none/cu13.yaml")


def test_directory(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is a directory"):
        load(tmp_path, "matrices")


def test_unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("pathlib.Path.read_bytes", refuse)
    with pytest.raises(ConfigError, match="cannot be read: permission denied"):
        load(tmp_path / "cpu.yaml", "cpu.yaml")


WISH = {"type": "string", "pattern": "^[a-z0-9.-]+$", "description": "a constraint"}
SCHEMA = {
    "type": "object",
    "required": ["name", "axes"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z]+$"},
        "axes": {
            "type": "object",
            "propertyNames": {"pattern": "^[a-z]+$"},
            "additionalProperties": {"type": "array", "items": WISH, "minItems": 1},
        },
        "profile": {"enum": ["plain", "rdma"]},
        "torch": {
            "anyOf": [
                WISH,
                {
                    "type": "object",
                    "properties": {"want": WISH},
                    "required": ["want"],
                    "additionalProperties": False,
                },
            ]
        },
    },
}


def test_a_right_document_has_no_problems(read: Any) -> None:
    text = "name: cpu\naxes:\n  os: [debian12]\nprofile: rdma\ntorch: {want: 1.13.1}\n"
    assert check_schema(read(text), SCHEMA) == ()


def test_unknown_keys_one_problem_each_by_line(read: Any) -> None:
    found = check_schema(read("name: x\naxis: {}\naxes: {}\nzzzz: 1\n"), SCHEMA)
    assert [(p.line, p.key, p.text, p.hint) for p in found] == [
        (2, "axis", "unknown key", "did you mean `axes`?"),
        (4, "zzzz", "unknown key", "remove `zzzz`"),
    ]
    assert found[0].evidence == ("known: axes, name, profile, torch",)
    assert found[0].file == "matrices/cpu.yaml"


def test_every_missing_key(read: Any) -> None:
    found = check_schema(read("profile: plain\n"), SCHEMA)
    assert [p.text for p in found] == ["key `name` is missing", "key `axes` is missing"]


@pytest.mark.parametrize("value", ["a\\nb", "a\\n", "a'b", "$(id)", "`id`", "a;b", "A"])
def test_values_are_data(read: Any, value: str) -> None:
    (problem,) = check_schema(read(f'name: "{value}"\naxes: {{}}\n'), SCHEMA)
    assert (problem.key, problem.line) == ("name", 1)
    assert problem.evidence[0] == f"found: {value.encode().decode('unicode_escape')!r}"
    assert "^[a-z]+$" in problem.text


def test_description_speaks_for_a_pattern(read: Any) -> None:
    (problem,) = check_schema(read("name: x\naxes:\n  os:\n    - a\n    - B\n"), SCHEMA)
    assert (problem.line, problem.key) == (5, "axes.os[1]")
    assert problem.text == "the value is not a constraint"


def test_wrong_key_name(read: Any) -> None:
    (problem,) = check_schema(read("name: x\naxes:\n  Os: [a]\n"), SCHEMA)
    assert (problem.line, problem.key) == (3, "axes.Os")
    assert problem.text.startswith("this key is not")


def test_wrong_type_and_empty_list(read: Any) -> None:
    first, second = check_schema(read("name: x\naxes:\n  os: a\n  rdma: []\n"), SCHEMA)
    assert (first.line, first.text) == (3, "should be a list, is text")
    assert (second.line, second.key) == (4, "axes.rdma")


def test_enum_has_the_known_values_and_the_near_miss(read: Any) -> None:
    (problem,) = check_schema(read("name: x\naxes: {}\nprofile: rmda\n"), SCHEMA)
    assert problem.evidence == ("known: plain, rdma",)
    assert problem.hint == "did you mean `rdma`?"


def test_alternatives_speak_of_the_one_that_was_meant(read: Any) -> None:
    head = "name: x\naxes: {}\ntorch: "
    (misspelt, missing) = check_schema(read(head + "{wont: 1}\n"), SCHEMA)
    assert {misspelt.hint, missing.hint} == {"did you mean `want`?", "add `want: …`"}
    (neither,) = check_schema(read(head + "[a]\n"), SCHEMA)
    assert neither.text == "should be text or a mapping, is a list"


def test_dotted() -> None:
    assert dotted(["include", 0, "os"]) == "include[0].os"
    assert dotted([]) == ""


def test_what_would_be_read_without_end_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.yaml")
    (tmp_path / "zero.yaml").symlink_to("/dev/zero")
    for name in ("fifo.yaml", "zero.yaml"):
        with pytest.raises(ConfigError, match="is a pipe or a device, not a file"):
            load(tmp_path / name, name)


def test_a_huge_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with (tmp_path / "huge.yaml").open("wb") as file:
        file.truncate(10**10)
    with pytest.raises(ConfigError, match="has 10000000000 bytes, 4000000 are allowed"):
        load(tmp_path / "huge.yaml", "huge.yaml")


def test_a_file_of_very_many_keys_is_refused_soon(tmp_path: Path) -> None:
    (tmp_path / "many.yaml").write_text("".join(f"k{n}: 1\n" for n in range(300_000)))
    begun = time.monotonic()
    with pytest.raises(ConfigError, match="has over 10000 nodes"):
        load(tmp_path / "many.yaml", "many.yaml")
    assert time.monotonic() - begun < 5
