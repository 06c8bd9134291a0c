"""YAML files as plain data that remembers its lines, and schema errors in words for people.

Version-like scalars are a trap (`cuda: 11.10` is the number 11.1 to YAML, `rdma: no` is false), so
scalars keep their source text; only `true`, `false` and null have another type.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Any

import yaml

from imagegen.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from jsonschema.exceptions import ValidationError as SchemaError

MAX_DEPTH = 50
MAX_NODES = 10_000
"""Nodes of a file, aliases expanded: real files have hundreds, an alias bomb has billions."""

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_FLATTER = "write it flatter, without aliases of aliases"
_TYPES = {
    "object": "a mapping",
    "array": "a list",
    "string": "text",
    "boolean": "`true` or `false`",
    "number": "a number",
    "null": "empty",
}

KeyPath = tuple["str | int", ...]
_Finding = tuple[KeyPath, str, str, str]  # where, text, evidence, hint


@dataclass(frozen=True)
class Document:
    """A YAML file: plain `data`, its `file` as shown to a user, and the line of every key path."""

    data: Any
    file: str
    lines: Mapping[KeyPath, int] = field(default_factory=dict, repr=False)

    def line(self, path: Sequence[str | int]) -> int:
        """1-based line of a key path, or of its nearest parent that stands in the file."""
        known = tuple(path)
        while known and known not in self.lines:
            known = known[:-1]
        return self.lines.get(known, 1)


def load(path: Path, shown: str, *, as_text: bool = True) -> Document:
    """The mapping in a YAML file. With `as_text` off, whole and decimal numbers become numbers.

    Raises ConfigError with every problem of the file that can be seen without its schema.
    """
    builder = _Builder(shown, as_text)
    try:
        text = path.read_bytes().decode("utf-8-sig")
        _guard_depth(text, shown)
        root = yaml.compose(text, _LOADER)
    except yaml.YAMLError as error:
        raise ConfigError(_not_yaml(error, shown)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(_unreadable(error, path, shown)) from None
    if not isinstance(root, yaml.Node) or root.tag == _TAG + "null":
        raise ConfigError(Problem("is empty", shown, hint="write its keys, or remove the file"))
    data = builder.build(root, ())
    if not isinstance(data, dict):
        text = f"the top level is {_kind(data)}, not a mapping"
        builder.report(root, (), text, "write `key: value` lines")
    if builder.problems:
        raise ConfigError(*dict.fromkeys(builder.problems))
    return Document(data, shown, builder.lines)


def _unreadable(error: OSError | UnicodeDecodeError, path: Path, shown: str) -> Problem:
    if isinstance(error, UnicodeDecodeError):
        line = error.object[: error.start].count(b"\n") + 1
        return Problem("is not UTF-8", shown, line, hint="save the file as UTF-8")
    if isinstance(error, IsADirectoryError):
        return Problem("is a directory, not a file", shown, hint="name a file in it")
    if not isinstance(error, FileNotFoundError):
        text = f"cannot be read: {(error.strerror or str(error)).lower()}"
        return Problem(text, shown, hint="make it readable for this user")
    folder = path.parent
    names = sorted(p.name for p in folder.glob(f"*{path.suffix}")) if folder.is_dir() else []
    evidence = f"`{folder}` has: {', '.join(names) or 'no such files'}"
    hint = _near(path.name, names, "correct the path")
    return Problem("no such file", shown, evidence=(evidence,), hint=hint)


def _not_yaml(error: Any, shown: str) -> Problem:
    mark = getattr(error, "problem_mark", None)
    words = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    evidence = f"{words} ({error.context})" if getattr(error, "context", "") else f"{words}"
    hint = "correct the syntax there; a tab cannot indent, and `: ` or ` #` in text needs quotes"
    if mark is None:
        return Problem("is not YAML", shown, evidence=(evidence,), hint=hint)
    evidence = f"column {mark.column + 1}: {evidence}"
    return Problem("is not YAML", shown, mark.line + 1, evidence=(evidence,), hint=hint)


def _guard_depth(text: str, shown: str) -> None:
    """Before composing: libyaml's composer recurses in C and would crash the process."""
    depth = 0
    for event in yaml.parse(text, _LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise ConfigError(Problem("is nested too deeply", shown, _line(event), hint=_FLATTER))


def _line(found: yaml.Node | yaml.Event) -> int:
    return found.start_mark.line + 1 if found.start_mark else 0


class _Builder:
    """Turns YAML nodes into plain data, noting the line of each key path and every problem."""

    def __init__(self, shown: str, as_text: bool) -> None:
        self._shown = shown
        self._as_text = as_text
        self.lines: dict[KeyPath, int] = {}
        self.problems: list[Problem] = []
        self._nodes = self._depth = 0

    def build(self, node: yaml.Node, path: KeyPath) -> Any:
        self._guard(node)
        self.lines.setdefault(path, _line(node))
        if not node.tag.startswith(_TAG):
            self.report(node, path, f"tag `{node.tag}` is not allowed", "remove the tag")
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        self._depth += 1
        built = (
            self._mapping(node, path)
            if isinstance(node, yaml.MappingNode)
            else [self.build(item, (*path, index)) for index, item in enumerate(node.value)]
        )
        self._depth -= 1
        return built

    def _guard(self, node: yaml.Node) -> None:
        self._nodes += 1
        if self._nodes > MAX_NODES or self._depth > MAX_DEPTH:
            text = f"has over {MAX_NODES} nodes or {MAX_DEPTH} levels with its aliases expanded"
            raise ConfigError(Problem(text, self._shown, _line(node), hint=_FLATTER))

    def report(self, node: yaml.Node, path: KeyPath, text: str, hint: str) -> None:
        self.problems.append(Problem(text, self._shown, _line(node), dotted(path), hint=hint))

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        text: str = node.value
        if node.tag == _TAG + "null":
            return None
        if node.tag == _TAG + "bool":
            return {"true": True, "false": False}.get(text.lower(), text)
        if not self._as_text and node.tag in (_TAG + "int", _TAG + "float"):
            return yaml.safe_load(text)
        return text

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
        first: dict[str, int] = {}
        own: dict[str, Any] = {}
        merges: list[yaml.Node] = []
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self.report(key, path, "a key must be one word", "write the key as text")
            elif key.value in first:
                text = f"is there twice, first on line {first[key.value]}"
                self.report(key, (*path, key.value), text, "remove one of the two")
            elif key.tag == _TAG + "merge":
                merges.append(value)
            else:
                first[key.value] = _line(key)
                self.lines.setdefault((*path, key.value), _line(key))
                own[key.value] = self.build(value, (*path, key.value))
        return {**self._merged(merges, path), **own}

    def _merged(self, merges: Iterable[yaml.Node], path: KeyPath) -> dict[str, Any]:
        """What `<<` brings: of several mappings the first that has a key wins."""
        merged: dict[str, Any] = {}
        for merge in merges:
            for source in merge.value if isinstance(merge, yaml.SequenceNode) else [merge]:
                if isinstance(source, yaml.MappingNode):
                    merged = {**self.build(source, path), **merged}
                else:
                    self.report(merge, path, "`<<` merges mappings only", "name a mapping")
        return merged


def dotted(path: Iterable[str | int]) -> str:
    """A key path as a user reads it: `include[0].os`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def check_schema(document: Document, schema: Mapping[str, Any]) -> tuple[Problem, ...]:
    """Everything in a document that its JSON schema (draft 2020-12) does not allow, by line.

    A schema's `description` beside a `pattern` says in words what is allowed.
    """
    found = [
        Problem(text, document.file, document.line(path), dotted(path), (evidence,), hint)
        for error in _validator_class()(schema).iter_errors(document.data)
        for path, text, evidence, hint in _findings(error)
    ]
    return tuple(sorted(dict.fromkeys(found), key=lambda problem: problem.line))


@cache
def _validator_class() -> Any:
    """Like jsonschema's own, but `$` in a pattern does not let a final newline pass."""
    from jsonschema import Draft202012Validator, ValidationError, validators

    def pattern(_: object, wanted: str, value: object, __: object) -> Iterator[SchemaError]:
        # `$` matches before a final newline too; doubled, the newline has to match the pattern
        text = f"{value}\n" if str(value).endswith("\n") else str(value)
        if isinstance(value, str) and not re.search(wanted, text):
            yield ValidationError("does not match")

    return validators.extend(Draft202012Validator, {"pattern": pattern})  # type: ignore[no-untyped-call]


def _findings(error: Any) -> Iterator[_Finding]:
    path: KeyPath = tuple(error.absolute_path)
    value, wanted = error.instance, error.validator_value
    match error.validator:
        case "additionalProperties":
            known = sorted(error.schema.get("properties", ()))
            for key in (key for key in value if key not in known):
                hint = _near(key, known, f"remove `{key}`")
                yield (*path, key), "unknown key", f"known: {', '.join(known)}", hint
        case "required":
            for key in (key for key in wanted if key not in value):
                has = ", ".join(value) or "nothing"
                yield path, f"key `{key}` is missing", f"it has: {has}", f"add `{key}: …`"
        case "enum":
            known = [str(choice) for choice in wanted]
            hint = _near(str(value), known, "choose one of them")
            yield path, f"`{value}` is not known here", f"known: {', '.join(known)}", hint
        case "pattern":
            yield _wrong_form(error, path)
        case "type":
            yield _wrong_type(path, value, [wanted] if isinstance(wanted, str) else wanted)
        case "anyOf":
            yield from _alternatives(error, path)
        case _:
            yield path, "is not allowed here", error.message, "correct the value"


def _wrong_form(error: Any, path: KeyPath) -> _Finding:
    value = error.instance
    is_key = "propertyNames" in list(error.absolute_schema_path)[-2:]
    wanted = error.schema.get("description") or f"text that matches `{error.validator_value}`"
    text = f"{'this key' if is_key else 'the value'} is not {wanted}"
    at = (*path, value) if is_key else path
    return at, text, f"found: {value!r}", "use only the characters that are allowed"


def _wrong_type(path: KeyPath, value: object, wanted: Sequence[str]) -> _Finding:
    allowed = " or ".join(_TYPES.get(name, name) for name in wanted)
    text = f"should be {allowed}, is {_kind(value)}"
    return path, text, f"found: {value!r}", f"write {allowed}"


def _alternatives(error: Any, path: KeyPath) -> Iterator[_Finding]:
    """What is wrong by the one alternative that has the value's type, if there is one."""
    branches: dict[Any, list[SchemaError]] = {}
    for inner in error.context:
        branches.setdefault(inner.schema_path[0], []).append(inner)
    for errors in branches.values():
        if not any(inner.validator == "type" and not inner.path for inner in errors):
            for inner in errors:
                yield from _findings(inner)
            return
    types = [rule["type"] for rule in error.validator_value if "type" in rule]
    yield _wrong_type(path, error.instance, types)


def _near(word: str, known: Sequence[str], otherwise: str) -> str:
    near = get_close_matches(word, known, 1)
    return f"did you mean `{near[0]}`?" if near else otherwise


def _kind(value: object) -> str:
    kinds = {dict: "object", list: "array", bool: "boolean", str: "string", type(None): "null"}
    return _TYPES[kinds.get(type(value), "number")]
