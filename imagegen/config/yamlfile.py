"""YAML files become documents, and what their schema does not allow becomes words for people.

Version-like scalars are a trap (`cuda: 11.10` is the number 11.1 to YAML, `rdma: no` is false), so
scalars keep their source text; only `true`, `false` and null have another type.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Any

from imagegen.config.document import TYPES, Document, KeyPath, dotted, kind_of
from imagegen.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from jsonschema.exceptions import ValidationError as SchemaError

_Finding = tuple[KeyPath, str, str, str]  # where, text, evidence, hint


def load(path: Path, shown: str, *, as_text: bool = True) -> Document:
    """The mapping in a YAML file. With `as_text` off, whole and decimal numbers become numbers.

    Raises ConfigError with every problem of the file that can be seen without its schema.
    """
    from imagegen.config.yaml_nodes import parse

    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(_unreadable(error, path, shown)) from None
    return parse(text, shown, as_text)


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
    allowed = " or ".join(TYPES.get(name, name) for name in wanted)
    text = f"should be {allowed}, is {kind_of(value)}"
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
