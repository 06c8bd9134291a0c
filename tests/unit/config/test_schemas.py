"""Test that the schemas and the types of the data that they accept have the same keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from imagegen.catalog import data as catalog
from imagegen.config import patterns, schemas
from imagegen.config.launch_schema import LAUNCH
from imagegen.matrix import document as matrix
from imagegen.sources import artifacts, lock_form, mirrors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from imagegen.config.schema_check import Schema


def part(schema: Schema, *path: str) -> Schema:
    """Return the schema at a path of keywords and keys in another one."""
    for key in path:
        schema = cast("Mapping[str, Schema]", schema)[key]
    return schema


def omission_rule() -> Schema:
    alternatives = part(schemas.MATRIX, "properties", "components", "additionalProperties")["anyOf"]
    return cast("list[Schema]", alternatives)[1]


CASES = {
    "os": (schemas.OS, catalog.OsData),
    "os release": (part(schemas.OS, "properties", "release"), catalog.OsReleaseData),
    "component": (schemas.COMPONENT, catalog.ComponentData),
    "contract": (schemas.CONTRACT, catalog.ContractData),
    "launch": (LAUNCH, catalog.LaunchData),
    "virtual": (schemas.VIRTUAL, catalog.VirtualData),
    "release": (schemas.RELEASE, catalog.ReleaseData),
    "matrix": (schemas.MATRIX, matrix.MatrixData),
    "want": (omission_rule(), matrix.WantData),
    "omit": (part(omission_rule(), "properties", "omit", "items"), matrix.OmitData),
    "artifacts": (artifacts.SCHEMA, artifacts.ArtifactsData),
    "artifact": (
        part(artifacts.SCHEMA, "properties", "artifacts", "items"),
        artifacts.ArtifactData,
    ),
    "mirrors": (mirrors.SCHEMA, mirrors.MirrorsData),
    "lock": (lock_form.SCHEMA, lock_form.LockData),
    "lock system": (
        part(lock_form.SCHEMA, "properties", "systems", "additionalProperties"),
        lock_form.SystemData,
    ),
    "lock cell": (
        part(lock_form.SCHEMA, "properties", "cells", "additionalProperties"),
        lock_form.CellData,
    ),
}


@pytest.mark.parametrize(("schema", "data"), CASES.values(), ids=CASES)
def test_a_schema_and_its_type_have_the_same_keys(schema: Schema, data: type) -> None:
    assert set(patterns.properties_of(schema)) == set(data.__annotations__)


@pytest.mark.parametrize(("schema", "data"), CASES.values(), ids=CASES)
def test_a_schema_and_its_type_require_the_same_keys(schema: Schema, data: type) -> None:
    # The annotations are text, because `NotRequired` is not in Python 3.10.
    texts = {key: note.__forward_arg__ for key, note in data.__annotations__.items()}
    required = {key for key, text in texts.items() if not text.startswith("NotRequired[")}
    total = getattr(data, "__total__")  # noqa: B009 - mypy does not know it of a type
    assert set(cast("list[str]", schema["required"])) == (required if total else set())
