"""Parse the text of a YAML file: plain data, the line of each key path, and every problem.

Others import this module where they first use it: PyYAML takes longer to load than a whole catalog
that was kept from the last run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import yaml

from imagegen.config.document import Document, KeyPath, dotted, kind_of
from imagegen.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MAX_DEPTH = 50
MAX_NODES = 10_000
"""The most nodes of a file, aliases expanded: real files have hundreds, an alias bomb has billions.
"""

MOST_EVENTS = 3 * MAX_NODES

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_FLATTER = "write it flatter, without aliases of aliases"


def parse(text: str, shown: str, as_text: bool) -> Document[Mapping[str, object]]:
    """Parse a text that holds a mapping.

    With `as_text` off, whole and decimal numbers become numbers. Raises ConfigError with every
    problem that can be seen without a schema.
    """
    builder = _Builder(shown, as_text)
    try:
        _guard_depth(text, shown)
        root = yaml.compose(text, _LOADER)
    except yaml.YAMLError as error:
        raise ConfigError(_not_yaml(error, shown)) from None
    if not isinstance(root, yaml.Node) or root.tag == _TAG + "null":
        raise ConfigError(Problem("is empty", shown, hint="write its keys, or remove the file"))
    data = builder.build(root, ())
    if not isinstance(data, dict):
        wrong = f"the top level is {kind_of(data)}, not a mapping"
        builder.report(root, (), wrong, "write `key: value` lines")
    if builder.problems or not isinstance(data, dict):
        raise ConfigError(*dict.fromkeys(builder.problems))
    return Document(data, shown, builder.lines)


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
    """Refuse a text that is nested too deeply, or has too many nodes, before it is composed.

    libyaml's composer recurses in C: it would crash the process. Raises ConfigError.
    """
    depth = 0
    for number, event in enumerate(yaml.parse(text, _LOADER)):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise ConfigError(Problem("is nested too deeply", shown, _line(event), hint=_FLATTER))
        if number > MOST_EVENTS:
            text = f"has over {MAX_NODES} nodes"
            raise ConfigError(Problem(text, shown, _line(event), hint="split it"))


def _line(found: yaml.Node | yaml.Event) -> int:
    return found.start_mark.line + 1 if found.start_mark else 0


class _Builder:
    """Turns YAML nodes into plain data; notes the line of each key path and every problem."""

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
        """Merge the mappings that `<<` names: where several have a key, the first one wins."""
        merged: dict[str, object] = {}
        for merge in merges:
            for source in merge.value if isinstance(merge, yaml.SequenceNode) else [merge]:
                if isinstance(source, yaml.MappingNode):
                    built = self.build(source, path)  # a mapping, as its node is one
                    merged = {**cast("dict[str, object]", built), **merged}
                else:
                    self.report(merge, path, "`<<` merges mappings only", "name a mapping")
        return merged
