"""Report what a JSON schema does not allow in a document, in words for people."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, TypedDict, cast

from imagegen.config.document import (
    TYPES,
    Document,
    KeyPath,
    dotted,
    kind_of,
    near,
)
from imagegen.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError as SchemaError

Schema = Mapping[str, object]
"""A JSON schema, draft 2020-12."""

_Finding = tuple[KeyPath, str, str, str]  # where, text, evidence, hint


class _Keywords(TypedDict, total=False):
    """The keywords of a schema that this module reads."""

    properties: Mapping[str, object]
    required: Sequence[str]
    enum: Sequence[object]
    pattern: str
    description: str
    examples: Sequence[str]
    type: str | Sequence[str]
    anyOf: Sequence[_Keywords]


def check_schema(document: Document[Mapping[str, object]], schema: Schema) -> tuple[Problem, ...]:
    """Report everything in a document that its schema does not allow, sorted by line.

    Where a schema has a `description` beside a `pattern`, the report says it to the user, and the
    first of its `examples`.
    """
    found = [
        Problem(text, document.file, document.line(path), dotted(path), (evidence,), hint)
        for error in _validator_class()(schema).iter_errors(document.data)
        for path, text, evidence, hint in _findings(error)
    ]
    return tuple(sorted(dict.fromkeys(found), key=lambda problem: problem.line))


@cache
def _validator_class() -> type[Draft202012Validator]:
    """Make jsonschema's validator stricter: `$` in a pattern does not accept a final newline."""
    from jsonschema import ValidationError, validators

    def pattern(_: object, wanted: str, value: object, __: object) -> Iterator[SchemaError]:
        # `$` also matches before a final newline. With a second one, the first must match too.
        text = f"{value}\n" if str(value).endswith("\n") else str(value)
        if isinstance(value, str) and not re.search(wanted, text):
            yield ValidationError("does not match")

    own = validators.Draft202012Validator
    extended: type[Draft202012Validator] = validators.extend(own, {"pattern": pattern})  # type: ignore[no-untyped-call]
    return extended


def _findings(error: SchemaError) -> Iterator[_Finding]:
    path: KeyPath = tuple(error.absolute_path)
    keywords = cast("_Keywords", error.schema)
    match error.validator:
        case "additionalProperties":
            known = sorted(keywords.get("properties", ()))
            for key in (key for key in _mapping(error) if key not in known):
                hint = near(key, known, f"remove `{key}`")
                yield (*path, key), "unknown key", f"known: {', '.join(known)}", hint
        case "required":
            has = ", ".join(_mapping(error)) or "nothing"
            for key in (key for key in keywords["required"] if key not in _mapping(error)):
                yield path, f"key `{key}` is missing", f"it has: {has}", f"add `{key}: …`"
        case "enum":
            known = [str(choice) for choice in keywords["enum"]]
            hint = near(str(error.instance), known, "choose one of them")
            text = f"`{error.instance}` is not known here"
            yield path, text, f"known: {', '.join(known)}", hint
        case "pattern":
            yield _wrong_form(error, keywords, path)
        case "type":
            yield _wrong_type(path, error.instance, _types(keywords))
        case "anyOf":
            yield from _alternatives(error, keywords, path)
        case _:
            yield path, "is not allowed here", error.message, "correct the value"


def _mapping(error: SchemaError) -> Mapping[str, object]:
    """Return the mapping that has a key too many or too few."""
    return cast("Mapping[str, object]", error.instance)


def _types(keywords: _Keywords) -> list[str]:
    wanted = keywords.get("type", ())
    return [wanted] if isinstance(wanted, str) else [*wanted]


def _wrong_form(error: SchemaError, keywords: _Keywords, path: KeyPath) -> _Finding:
    value = str(error.instance)
    is_key = "propertyNames" in list(error.absolute_schema_path)[-2:]
    wanted = keywords.get("description") or f"text that matches `{keywords['pattern']}`"
    text = f"{'this key' if is_key else 'the value'} is not {wanted}"
    at = (*path, value) if is_key else path
    hint = "".join(f"such as `{one}`" for one in keywords.get("examples", ())[:1])
    return at, text, f"found: {value!r}", hint or "use only the characters that are allowed"


def _wrong_type(path: KeyPath, value: object, wanted: Sequence[str]) -> _Finding:
    allowed = " or ".join(TYPES.get(name, name) for name in wanted)
    text = f"should be {allowed}, is {kind_of(value)}"
    return path, text, f"found: {value!r}", f"write {allowed}"


def _alternatives(error: SchemaError, keywords: _Keywords, path: KeyPath) -> Iterator[_Finding]:
    """Report what is wrong by the one alternative that has the value's type, if there is one."""
    branches: dict[str | int, list[SchemaError]] = {}
    for inner in error.context:
        branches.setdefault(inner.schema_path[0], []).append(inner)
    for errors in branches.values():
        if not any(inner.validator == "type" and not inner.path for inner in errors):
            for inner in errors:
                yield from _findings(inner)
            return
    types = [name for alternative in keywords["anyOf"] for name in _types(alternative)]
    yield _wrong_type(path, error.instance, types)
