"""Define the form of a lock file: its JSON schema, and the types of its data."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from imagegen.config.schema_check import Schema

_TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
_SHA256S = {
    "type": "object",
    "additionalProperties": {
        "type": "string",
        "pattern": r"^([0-9a-f]{64}|unverified)$",
        "description": "64 hexadecimal digits in small letters",
    },
}


def _object(**properties: Schema) -> Schema:
    return {
        "type": "object",
        "required": list(properties),
        "properties": properties,
        "additionalProperties": False,
    }


SCHEMA = _object(
    matrix={"type": "string"},
    systems={
        "type": "object",
        "additionalProperties": _object(base={"type": "string"}, apt=_TEXTS, wheels=_SHA256S),
    },
    cells={
        "type": "object",
        "additionalProperties": _object(system={"type": "string"}, releases=_TEXTS, parts=_SHA256S),
    },
)


class SystemData(TypedDict):
    """The data of one OS in a lock file; the versions of a package are separated by spaces."""

    base: str
    apt: Mapping[str, str]
    wheels: Mapping[str, str]


class CellData(TypedDict):
    """The data of one cell in a lock file."""

    system: str
    releases: Mapping[str, str]
    parts: Mapping[str, str]


class LockData(TypedDict):
    """The data of a lock file, after the schema has accepted it."""

    matrix: str
    systems: Mapping[str, SystemData]
    cells: Mapping[str, CellData]
