"""Define the JSON schemas of matrix, component and OS files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imagegen.config.launch_schema import LAUNCH
from imagegen.config.patterns import (
    CAPABILITY,
    COLUMN,
    CONSTRAINT,
    DATE,
    DIGIT,
    DIGITS,
    ENV_NAME,
    ENV_VALUE,
    FACTOR,
    GLIBC,
    GLOB,
    IMAGE,
    INTEGER,
    LETTERS,
    MODULE,
    NAME,
    NUMBER,
    NUMBERS,
    ONE_GROUP,
    OS_ID,
    OWN_ENV_NAME,
    PACKAGE,
    PACKAGE_VERSION,
    PATH,
    POSITIVE,
    RELATIVE,
    SHA256,
    SHORT_WORD,
    SIZE,
    TAG,
    TEXT,
    URL,
    USER,
    VARIANT,
    VERSION,
    WARNING,
    properties_of,
)
from imagegen.config.patterns import form_of as _form
from imagegen.config.patterns import list_of as _list
from imagegen.config.patterns import map_of as _map
from imagegen.config.patterns import object_of as _object
from imagegen.config.patterns import text_of as _text
from imagegen.model.catalog import CLUES, ROLES
from imagegen.model.cell import MATRIX_PROFILES

if TYPE_CHECKING:
    from imagegen.config.schema_check import Schema


_CONSTRAINT = _text(CONSTRAINT)
_ONE_OR_MORE = {"anyOf": [_CONSTRAINT, _list(_CONSTRAINT, 1)]}
_FACTS = {"type": "object", "propertyNames": _form(COLUMN)}

OS = _object(
    ("id", "family", "release", "suite", "image", "glibc", "lib_dir", "bootstrap", "source"),
    id=_text(OS_ID),
    family={"enum": ["debian", "rhel"]},
    release=_object(("ID", "VERSION_ID"), ID=_text(NAME), VERSION_ID=_text(NUMBERS)),
    suite=_text(NAME),
    image=_text(IMAGE),
    glibc=_text(GLIBC),
    lib_dir=_text(PATH),
    bootstrap={"type": "boolean"},
    notes=_list(_text(TEXT)),
    missing=_text(TEXT),
    source=_text(TEXT),
)

_CONSTRAINTS = _map(NAME, _ONE_OR_MORE)

RELEASE = _object(
    ("version", "origin", "source"),
    version=_text(VERSION),
    variant=_text(VARIANT),
    requires=_CONSTRAINTS,
    limits=_CONSTRAINTS,
    built_for=_CONSTRAINTS,
    known_with=_CONSTRAINTS,
    recommends=_CONSTRAINTS,
    provides=_map(NAME, _text(PACKAGE_VERSION)),
    uncertain={"anyOf": [_text(NAME), _list(_text(NAME), 1)]},
    aliases={"anyOf": [_text(PACKAGE_VERSION), _list(_text(PACKAGE_VERSION), 1)]},
    rank=_text(DIGIT),
    confidence={"enum": ["high", "medium"]},
    index=_text(URL),
    tarball=_object(("url", "sha256"), url=_text(URL), sha256=_text(SHA256)),
    artifact=_text(PACKAGE),
    notes=_list(_text(TEXT)),
    apt=_map(PACKAGE, _text(PACKAGE_VERSION)),
    build_apt=_map(PACKAGE, _text(PACKAGE_VERSION)),
    wheels=_map(PACKAGE, _text(PACKAGE_VERSION)),
    facts=_FACTS,
    patched=_map(PATH, _text(TEXT)),
    origin=_text(TEXT),
    source=_text(TEXT),
)

CONTRACT = _object(
    (),
    caps=_list(_text(CAPABILITY)),
    devices=_list(_text(PATH)),
    ulimits=_map(LETTERS, _text(INTEGER)),
    shm_bytes=_text(DIGITS),
    network={"enum": ["bridge", "host"]},
)

_TEMPLATE = {"type": "object", "propertyNames": {"enum": sorted(properties_of(RELEASE))}}
ROWS = _map(NAME, _TEMPLATE)
"""The meaning of a CSV file's lines, by their kind."""
KEYS = _map(COLUMN, _map(SHORT_WORD, {"anyOf": [_text(TEXT), _map(COLUMN, _text(TEXT))]}))
"""The short words in a column of that file: each stands for a text, or for more columns."""

VIRTUAL = _object(
    ("name", "title"),
    name=_text(NAME),
    title=_text(TEXT),
    releases=_list(RELEASE),
    rows=ROWS,
    keys=KEYS,
)

_ORDER = _text(POSITIVE)

CHECKS = _object(
    (),
    order=_ORDER,
    short_names=_list(_text(NAME)),
    more_suites=_list(_text(NAME)),
    hardware={"enum": ["gpu", "rdma", "harp"]},
    slow_probe=_text(MODULE),
    before_job={"type": "boolean"},
)

REQUEST = _object(
    (),
    order=_ORDER,
    always={"type": "boolean"},
    keys=_map(NAME, _text(VARIANT)),
    index_prefix=_text(LETTERS),
    values=_list(_text(NAME)),
    successors=_map(NAME, _text(VARIANT)),
    gpu_libraries=_list(_text(NAME)),
)

FOUND_BY = _list(
    _object(
        ("kind", "name"),
        kind={"enum": list(CLUES)},
        name=_text(GLOB),
        version=_text(ONE_GROUP),
        variant=_text(VARIANT),
        value=_text(NAME),
    )
)
"""What shows that an image has a component; `version` is a regular expression with one group."""

COMPONENT = _object(
    ("name", "title", "seconds", "suites", "releases"),
    aliases=_map(NAME, _text(NAME)),
    one_of=_list(_text(NAME)),
    rules=_map(NAME, _text(TEXT)),
    unknown=_map(NAME, _text(TEXT)),
    rows=ROWS,
    keys=KEYS,
    name=_text(NAME),
    title=_text(TEXT),
    needs=_list(_text(NAME)),
    seconds=_text(NUMBER),
    churn=_text(NUMBER),
    megabytes={"anyOf": [_text(DIGITS), _map(PACKAGE, _text(DIGITS))]},
    env=_map(ENV_NAME, _text(ENV_VALUE)),
    path=_list(_text(PATH)),
    suites=_list(_text(NAME), 1),
    installs=_list({"enum": ["apt", "wheels", "index", "tarball", "artifact", "conda", "base"]}),
    contract=CONTRACT,
    entrypoint=_text(PATH),
    trees=_map(RELATIVE, _text(RELATIVE)),
    releases=_list(RELEASE),
    role={"enum": list(ROLES)},
    own_copies=_map(NAME, _object(("of", "warning"), of=_text(NAME), warning=_text(WARNING))),
    pip_pins=_object(("of", "warning"), of=_list(_text(NAME), 1), warning=_text(WARNING)),
    request=REQUEST,
    checks=CHECKS,
    launch=LAUNCH,
    found_by=FOUND_BY,
)

RULE = _object(
    ("what", "why", "source"), what=_text(TEXT), why=_text(TEXT), source=_list(_text(TEXT), 1)
)


def _row(**properties: Schema) -> Schema:
    """Make the schema of a mapping with these keys and constraints on axes and components."""
    return {"type": "object", "properties": properties, "additionalProperties": _CONSTRAINT}


_CONDITION = _map(NAME, _CONSTRAINT)

_COMPONENT_CONSTRAINT = {
    "anyOf": [
        _CONSTRAINT,
        _object(
            ("want",),
            want=_CONSTRAINT,
            omit=_list(_object(("when", "reason"), when=_CONDITION, reason=_text(TEXT)), 1),
        ),
    ]
}

MATRIX = _object(
    ("name", "tag", "axes", "components"),
    name=_text(NAME),
    title=_text(TEXT),
    tag=_text(TAG),
    profile={"enum": list(MATRIX_PROFILES)},
    base={"enum": ["auto", "registry", "bootstrap"]},
    axes=_map(NAME, _list(_CONSTRAINT, 1)),
    components=_map(NAME, _COMPONENT_CONSTRAINT),
    defaults=_map(NAME, _CONSTRAINT),
    include=_list(_row(tag=_text(TAG))),
    exclude=_list({**_row(reason=_text(TEXT)), "required": ["reason"]}),
    notes=_list(_text(TEXT)),
    env=_map(OWN_ENV_NAME, _text(ENV_VALUE)),
    user=_object(("name", "uid"), name=_text(USER), uid=_text(POSITIVE)),
    allow_unknown={"type": "boolean"},
    size_budget=_object(
        (),
        factor=_text(FACTOR),
        size=_text(SIZE),
        action={"enum": ["warn", "fail"]},
    ),
    owner=_text(TEXT),
    expires=_text(DATE),
)
