"""Read the combinations that are known to fail, and write them for the checks in images.

`make generated` writes `validate/known_bad.json` again; a test compares it with the catalog.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import orjson

from imagegen.config import schemas
from imagegen.config.patterns import properties_of
from imagegen.config.payload import KNOWN_BAD_FOLDER, shown
from imagegen.config.schema_check import check_schema
from imagegen.config.yamlfile import load
from imagegen.errors import ConfigError, Problem
from imagegen.model.catalog import PACKAGES, KnownBad

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from imagegen.catalog.data import KnownBadData
    from imagegen.config.payload import Payload
    from imagegen.config.schema_check import Schema
    from imagegen.model.catalog import Catalog

FILE = "validate/known_bad.json"
_YAML = ".yaml"
_RELEASE, _MATRIX = properties_of(schemas.RELEASE), properties_of(schemas.MATRIX)
_CLUE = properties_of(cast("Schema", schemas.FOUND_BY["items"]))
_CONSTRAINT = _MATRIX["defaults"]["additionalProperties"]
SCHEMA: Schema = {
    "type": "object",
    "required": ["symptom", "workaround", "where", "source", "expires"],
    "properties": {
        "symptom": _RELEASE["origin"],
        "workaround": _RELEASE["origin"],
        "where": {"enum": ["launch", "build", "host"]},
        "source": {"type": "array", "items": _RELEASE["index"], "minItems": 1},
        "expires": _MATRIX["expires"],
        "components": _RELEASE["requires"],
        "packages": {
            "type": "object",
            "propertyNames": {"enum": [*PACKAGES]},
            "additionalProperties": {**_RELEASE["wheels"], "additionalProperties": _CONSTRAINT},
        },
        "several": _CLUE["name"],
        "unless_env": _MATRIX["env"],
    },
    "additionalProperties": False,
}
"""The schema of a file of `dockerfiles/known-bad`."""
_AS_TEXT = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE


def read_known_bad(payload: Payload, problems: list[Problem]) -> tuple[KnownBad, ...]:
    """Read all rows, sorted by name; what is wrong in them is added to the problems."""
    rows: list[KnownBad] = []
    for file in payload.names(KNOWN_BAD_FOLDER):
        path = payload.find(f"{KNOWN_BAD_FOLDER}/{file}")
        if path is None or not file.endswith(_YAML):
            continue
        try:
            document = load(path, shown(path))
        except ConfigError as error:
            problems += error.problems
            continue
        wrong = check_schema(document, SCHEMA)
        problems += wrong
        if not wrong:
            data = cast("KnownBadData", document.data)
            rows.append(_row(file.removesuffix(_YAML), data, document.file))
    return tuple(rows)


def _row(name: str, data: KnownBadData, file: str) -> KnownBad:
    return KnownBad(
        name=name,
        symptom=data["symptom"],
        workaround=data["workaround"],
        where=data["where"],
        source=tuple(data["source"]),
        expires=data["expires"],
        file=file,
        components={
            key: (value,) if isinstance(value, str) else tuple(value)
            for key, value in data.get("components", {}).items()
        },
        packages=data.get("packages", {}),
        several=data.get("several", ""),
        unless_env=data.get("unless_env", {}),
    )


def unknown_names(catalog: Catalog) -> Iterator[Problem]:
    """Report rows that name what is neither a component nor another name of the catalog."""
    for row in catalog.known_bad:
        for name in row.components:
            if name not in catalog.components and name not in catalog.virtual:
                hint = "correct the name, or name packages"
                yield Problem(f"`{name}` is no component", row.file, key="components", hint=hint)
        if not (row.components or row.packages or row.several):
            yield Problem("names nothing that is bad", row.file, hint="add `components`")


def known_bad_json(catalog: Catalog) -> bytes:
    """Write what `validate` has to know: the rows, with the packages that show a component."""
    return orjson.dumps([*_for_images(catalog)], option=_AS_TEXT)


def _for_images(catalog: Catalog) -> Iterator[Mapping[str, object]]:
    for row in catalog.known_bad:
        yield {
            "name": row.name,
            "symptom": row.symptom,
            "workaround": row.workaround,
            "where": row.where,
            "source": row.source[0],
            "components": {
                name: {"is": list(constraints), "packages": list(_packages(name, catalog))}
                for name, constraints in row.components.items()
            },
            "packages": row.packages,
            "several": row.several,
            "unless_env": row.unless_env,
        }


def _packages(name: str, catalog: Catalog) -> Iterable[list[str]]:
    """List the packages that show a component in an image: kind and name."""
    component = catalog.components.get(name)
    clues = component.found_by if component else ()
    kinds = ("wheel", "deb", "conda")
    return ([one.kind, one.name] for one in clues if one.kind in kinds and not one.value)
