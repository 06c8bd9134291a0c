"""YAML files as plain data that remembers its lines, and schema errors in words for people.

Version-like scalars are a trap (`cuda: 11.10` is the number 11.1 to YAML, `rdma: no` is false), so
scalars keep their source text; only `true`, `false` and null have another type.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import yaml

from imagegen.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from jsonschema.exceptions import ValidationError as SchemaError

MAX_NODES = 10_000
"""Nodes of a file, aliases expanded: real files have hundreds, an alias bomb has billions."""

_TAG = "tag:yaml.org,2002:"
_MERGE = _TAG + "merge"
_BOOLEANS = {"true": True, "false": False}
_SCALARS = frozenset(
    _TAG + kind for kind in ("str", "int", "float", "bool", "null", "timestamp", "merge", "value")
)
_TYPES = {
    "object": "a mapping",
    "array": "a list",
    "string": "text",
    "boolean": "`true` or `false`",
    "integer": "a whole number",
    "number": "a number",
    "null": "empty",
}

KeyPath = tuple["str | int", ...]
_Finding = tuple[KeyPath, str, str, str]
"""Key path, text, evidence and hint of one problem."""


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
    root = _compose(_text(path, shown), shown)
    builder = _Builder(shown, as_text)
    data = builder.build(root, ())
    if builder.problems:
        raise ConfigError(*builder.problems)
    if not isinstance(data, dict):
        problem = Problem(
            f"the top level is {_kind(data)}, not a mapping",
            shown,
            _line(root),
            hint="start the file with `key: value` lines",
        )
        raise ConfigError(problem)
    return Document(data, shown, builder.lines)


def _text(path: Path, shown: str) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(_missing(path, shown)) from None
    except IsADirectoryError:
        problem = Problem("is a directory, not a file", shown, hint="name a file in it")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        evidence = (f"byte {error.object[error.start]:#04x} at offset {error.start}",)
        hint = "save the file as UTF-8"
        problem = Problem("is not UTF-8", shown, line, evidence=evidence, hint=hint)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        problem = Problem(f"cannot be read: {reason}", shown, hint="make it readable for this user")
    raise ConfigError(problem)


def _missing(path: Path, shown: str) -> Problem:
    folder = path.parent
    if not folder.is_dir():
        evidence, names = f"there is no folder `{folder}`", []
    else:
        names = sorted(entry.name for entry in folder.iterdir() if entry.suffix == path.suffix)
        evidence = f"`{folder}` has: {', '.join(names) or 'no such files'}"
    hint = _near(path.name, names, "correct the path")
    return Problem("no such file", shown, evidence=(evidence,), hint=hint)


def _compose(text: str, shown: str) -> yaml.Node:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        root = yaml.compose(text, Loader=loader)
    except yaml.YAMLError as error:
        raise ConfigError(_not_yaml(error, shown)) from None
    except RecursionError:
        raise ConfigError(_too_big(shown, 1, "is nested too deeply")) from None
    if root is None:
        problem = Problem("is empty", shown, hint="write its keys, or remove the file")
        raise ConfigError(problem)
    assert isinstance(root, yaml.Node)
    return root


def _not_yaml(error: yaml.YAMLError, shown: str) -> Problem:
    mark = getattr(error, "problem_mark", None)
    words = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    context = getattr(error, "context", None)
    where = f"column {mark.column + 1}: " if mark else ""
    evidence = [f"{where}{words}" + (f" ({context})" if context else "")]
    hint = "correct the syntax there; a tab cannot indent, and `: ` or ` #` in text needs quotes"
    line = mark.line + 1 if mark else 0
    return Problem("is not YAML", shown, line, evidence=tuple(evidence), hint=hint)


def _too_big(shown: str, line: int, text: str) -> Problem:
    return Problem(text, shown, line, hint="write it flatter, without aliases of aliases")


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


class _Builder:
    """Turns YAML nodes into plain data, noting the line of each key path and every problem."""

    def __init__(self, shown: str, as_text: bool) -> None:
        self.shown = shown
        self.as_text = as_text
        self.lines: dict[KeyPath, int] = {}
        self.problems: list[Problem] = []
        self._nodes = 0
        self._open: list[yaml.Node] = []

    def build(self, node: yaml.Node, path: KeyPath) -> Any:
        self._guard(node)
        self.lines.setdefault(path, _line(node))
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        if not node.tag.startswith((_TAG + "map", _TAG + "seq")):
            self._report(node, path, f"tag `{node.tag}` is not allowed", hint="remove the tag")
        self._open.append(node)
        built: Any
        if isinstance(node, yaml.MappingNode):
            built = self._mapping(node, path)
        else:
            built = [self.build(item, (*path, i)) for i, item in enumerate(node.value)]
        self._open.pop()
        return built

    def _guard(self, node: yaml.Node) -> None:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            text = f"has more than {MAX_NODES} nodes with its aliases expanded"
            raise ConfigError(_too_big(self.shown, _line(node), text))
        if any(node is parent for parent in self._open):
            raise ConfigError(_too_big(self.shown, _line(node), "an alias contains itself"))

    def _report(self, node: yaml.Node, path: KeyPath, text: str, *, hint: str) -> None:
        self.problems.append(Problem(text, self.shown, _line(node), dotted(path), hint=hint))

    def _scalar(self, node: yaml.ScalarNode, path: KeyPath) -> Any:
        text: str = node.value
        if node.tag not in _SCALARS:
            self._report(node, path, f"tag `{node.tag}` is not allowed", hint="remove the tag")
        if node.tag == _TAG + "null":
            return None
        if node.tag == _TAG + "bool":
            return _BOOLEANS.get(text.lower(), text)
        if not self.as_text and node.tag in (_TAG + "int", _TAG + "float"):
            return _number(text)
        return text

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
        first: dict[str, yaml.Node] = {}
        own: dict[str, Any] = {}
        merges: list[yaml.Node] = []
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self._report(key, path, "a key must be one word", hint="write the key as text")
            elif key.value in first:
                self._duplicate(key, first[key.value], path)
            elif key.tag == _MERGE:
                merges.append(value)
            else:
                first[key.value] = key
                self.lines.setdefault((*path, key.value), _line(key))
                own[key.value] = self.build(value, (*path, key.value))
        return {**self._merged(merges, path), **own}

    def _duplicate(self, key: yaml.ScalarNode, first: yaml.Node, path: KeyPath) -> None:
        text = f"is there twice, first on line {_line(first)}"
        self._report(key, (*path, key.value), text, hint="remove one of the two")

    def _merged(self, merges: Iterable[yaml.Node], path: KeyPath) -> dict[str, Any]:
        """What `<<` brings: of several mappings the first that has a key wins."""
        merged: dict[str, Any] = {}
        for merge in merges:
            for source in merge.value if isinstance(merge, yaml.SequenceNode) else [merge]:
                if isinstance(source, yaml.MappingNode):
                    merged = {**self.build(source, path), **merged}
                else:
                    self._report(merge, path, "`<<` merges mappings only", hint="name a mapping")
        return merged


def _number(text: str) -> int | float | str:
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return text


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
        for error in _validator(schema).iter_errors(document.data)
        for path, text, evidence, hint in _findings(error)
    ]
    return tuple(sorted(dict.fromkeys(found), key=lambda problem: problem.line))


def _validator(schema: Mapping[str, Any]) -> Any:
    """Like jsonschema's own, but `$` in a pattern does not let a final newline pass."""
    from jsonschema import Draft202012Validator, ValidationError, validators

    def pattern(_: object, wanted: str, value: object, __: object) -> Iterator[SchemaError]:
        # `$` matches before a final newline too; doubled, the newline has to match the pattern
        text = f"{value}\n" if str(value).endswith("\n") else str(value)
        if isinstance(value, str) and not re.search(wanted, text):
            yield ValidationError("does not match")

    extend: Any = validators.extend
    return extend(Draft202012Validator, {"pattern": pattern})(schema)


def _findings(error: SchemaError) -> Iterator[_Finding]:
    yield from _EXPLANATIONS.get(str(error.validator), _other)(error, tuple(error.absolute_path))


def _unknown_keys(error: Any, path: KeyPath) -> Iterator[_Finding]:
    known = sorted(error.schema.get("properties", ()))
    for key in error.instance:
        if key not in known:
            hint = _near(key, known, f"remove `{key}`")
            yield (*path, key), "unknown key", f"known: {', '.join(known)}", hint


def _missing_keys(error: Any, path: KeyPath) -> Iterator[_Finding]:
    for key in error.validator_value:
        if key not in error.instance:
            has = ", ".join(error.instance) or "nothing"
            yield path, f"key `{key}` is missing", f"it has: {has}", f"add `{key}: …`"


def _wrong_form(error: Any, path: KeyPath) -> Iterator[_Finding]:
    value = error.instance
    is_key = "propertyNames" in list(error.absolute_schema_path)[-2:]
    wanted = error.schema.get("description") or f"text that matches {error.validator_value}"
    text = f"{'this key' if is_key else 'the value'} is not {wanted}"
    yield (*path, value) if is_key else path, text, f"found: {value!r}", "use these characters only"


def _unknown_choice(error: Any, path: KeyPath) -> Iterator[_Finding]:
    known = [str(choice) for choice in error.validator_value]
    hint = _near(str(error.instance), known, "choose one of them")
    yield path, f"`{error.instance}` is not known here", f"known: {', '.join(known)}", hint


def _wrong_type(error: Any, path: KeyPath) -> Iterator[_Finding]:
    wanted = error.validator_value
    if error.validator == "anyOf":
        wanted = [rule["type"] for rule in wanted if "type" in rule]
    names = [_TYPES.get(name, name) for name in ([wanted] if isinstance(wanted, str) else wanted)]
    text = f"should be {' or '.join(names)}, is {_kind(error.instance)}"
    yield path, text, f"found: {error.instance!r}", f"write {' or '.join(names)}"


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
    yield from _wrong_type(error, path)


def _other(error: Any, path: KeyPath) -> Iterator[_Finding]:
    yield path, "is not what stands here", error.message, "correct the value"


_EXPLANATIONS: Mapping[str, Callable[[Any, KeyPath], Iterator[_Finding]]] = {
    "additionalProperties": _unknown_keys,
    "required": _missing_keys,
    "pattern": _wrong_form,
    "enum": _unknown_choice,
    "type": _wrong_type,
    "anyOf": _alternatives,
}


def _near(word: str, known: Sequence[str], otherwise: str) -> str:
    near = get_close_matches(word, known, 1)
    return f"did you mean `{near[0]}`?" if near else otherwise


def _kind(value: object) -> str:
    kinds = {dict: "object", list: "array", bool: "boolean", str: "string", type(None): "null"}
    return _TYPES[kinds.get(type(value), "number")]
