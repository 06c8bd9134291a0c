"""YAML files as plain data that remembers its lines, and what is wrong with one as text.

Version-like scalars are a trap (`cuda: 11.10` is the number 11.1 to YAML, `rdma: no` is false), so
scalars keep their source text; only `true`, `false` and null have another type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Generic, TypeVar, cast

import yaml

from imagegen.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

MAX_DEPTH = 50
MAX_NODES = 10_000
"""Nodes of a file, aliases expanded: real files have hundreds, an alias bomb has billions."""

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_FLATTER = "write it flatter, without aliases of aliases"
TYPES = {
    "object": "a mapping",
    "array": "a list",
    "string": "text",
    "boolean": "`true` or `false`",
    "number": "a number",
    "null": "empty",
}
"""The types of JSON schema, as a user reads them."""

KeyPath = tuple["str | int", ...]
Data_co = TypeVar("Data_co", bound=Mapping[str, object], covariant=True)


@dataclass(frozen=True)
class Document(Generic[Data_co]):
    """A YAML file: plain `data`, its `file` as shown to a user, and the line of every key path.

    Who has checked it against a schema knows the type of `data`, and casts to it.
    """

    data: Data_co
    file: str
    lines: Mapping[KeyPath, int] = field(default_factory=dict, repr=False)

    def line(self, path: Sequence[str | int]) -> int:
        """1-based line of a key path, or of its nearest parent that stands in the file."""
        known = tuple(path)
        while known and known not in self.lines:
            known = known[:-1]
        return self.lines.get(known, 1)


def load(path: Path, shown: str, *, as_text: bool = True) -> Document[Mapping[str, object]]:
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
        text = f"the top level is {kind_of(data)}, not a mapping"
        builder.report(root, (), text, "write `key: value` lines")
    if builder.problems or not isinstance(data, dict):
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
    hint = near(path.name, names, "correct the path")
    return Problem("no such file", shown, evidence=(evidence,), hint=hint)


def _not_yaml(error: yaml.YAMLError, shown: str) -> Problem:
    mark = getattr(error, "problem_mark", None)
    words = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    context = getattr(error, "context", "")
    evidence = f"{words} ({context})" if context else f"{words}"
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

    def build(self, node: yaml.Node, path: KeyPath) -> object:
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

    def _scalar(self, node: yaml.ScalarNode) -> object:
        text: str = node.value
        if node.tag == _TAG + "null":
            return None
        if node.tag == _TAG + "bool":
            return {"true": True, "false": False}.get(text.lower(), text)
        if not self._as_text and node.tag in (_TAG + "int", _TAG + "float"):
            return yaml.safe_load(text)
        return text

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, object]:
        first: dict[str, int] = {}
        own: dict[str, object] = {}
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

    def _merged(self, merges: Iterable[yaml.Node], path: KeyPath) -> dict[str, object]:
        """What `<<` brings: of several mappings the first that has a key wins."""
        merged: dict[str, object] = {}
        for merge in merges:
            for source in merge.value if isinstance(merge, yaml.SequenceNode) else [merge]:
                if isinstance(source, yaml.MappingNode):
                    built = self.build(source, path)  # a mapping, as its node is one
                    merged = {**cast("dict[str, object]", built), **merged}
                else:
                    self.report(merge, path, "`<<` merges mappings only", "name a mapping")
        return merged


def dotted(path: Iterable[str | int]) -> str:
    """A key path as a user reads it: `include[0].os`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def near(word: str, known: Sequence[str], otherwise: str) -> str:
    """The hint that names the nearest of the words that are known, else another one."""
    found = get_close_matches(word, known, 1)
    return f"did you mean `{found[0]}`?" if found else otherwise


def kind_of(value: object) -> str:
    """The type of a value, as a user reads it."""
    kinds = {dict: "object", list: "array", bool: "boolean", str: "string", type(None): "null"}
    return TYPES[kinds.get(type(value), "number")]
