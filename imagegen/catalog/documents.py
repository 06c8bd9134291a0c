"""Read how documents launch their images, and why arguments of launches are there."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypedDict, cast

from imagegen.config.patterns import DIGITS, IMAGE, NAME, TEXT, list_of, map_of, object_of, text_of
from imagegen.config.payload import shown
from imagegen.config.schema_check import check_schema
from imagegen.config.yamlfile import load
from imagegen.errors import ConfigError
from imagegen.model.launch import Habits, HostFact, Reason

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import NotRequired

    from imagegen.config.payload import Payload
    from imagegen.config.schema_check import Schema

DOCUMENTS_FOLDER = "dockerfiles/documents"
REASONS_FILE = "dockerfiles/launch/reasons.yaml"
_TEXT, _WORDS, _PLAIN = text_of(TEXT), list_of(text_of(TEXT), 1), {"type": "string"}
_HOST_FACT = object_of(("name", "wants", "command"), name=text_of(NAME), wants=_TEXT, command=_TEXT)
SCHEMA: Schema = object_of(
    ("title", "source"),
    title=_TEXT,
    source=_TEXT,
    matrices=list_of(text_of(NAME)),
    registry=text_of(IMAGE),
    program=_TEXT,
    interpreter=_TEXT,
    scripts=map_of(NAME, _WORDS),
    order=list_of(text_of(NAME), 1),
    variables=_WORDS,
    over_tcp={"type": "boolean"},
    dashes={"enum": ["-", "--"]},
    count={"enum": ["-n", "-np"]},
    model=_TEXT,
    model_of_one=_TEXT,
    interfaces={"type": "object", "additionalProperties": _PLAIN},
    mpi_interface=_TEXT,
    hosts=_TEXT,
    first_host=text_of(DIGITS),
    launcher=_WORDS,
    manifest={"type": "object", "additionalProperties": _PLAIN},
    host=list_of(_HOST_FACT),
)
"""The schema of a file of `dockerfiles/documents`."""
_REASON = object_of(("why", "without", "source"), why=_TEXT, without=_TEXT, source=_TEXT)
REASONS: Schema = {"type": "object", "additionalProperties": _REASON}


class HostFactData(TypedDict):
    """What a document asks of a machine."""

    name: str
    wants: str
    command: str


class DocumentData(TypedDict):
    """A file of `dockerfiles/documents`; see `model.launch.Habits`."""

    title: str
    source: str
    matrices: NotRequired[list[str]]
    registry: NotRequired[str]
    program: NotRequired[str]
    interpreter: NotRequired[str]
    scripts: NotRequired[Mapping[str, list[str]]]
    order: NotRequired[list[str]]
    variables: NotRequired[list[str]]
    over_tcp: NotRequired[bool]
    dashes: NotRequired[str]
    count: NotRequired[str]
    model: NotRequired[str]
    model_of_one: NotRequired[str]
    interfaces: NotRequired[Mapping[str, str]]
    mpi_interface: NotRequired[str]
    hosts: NotRequired[str]
    first_host: NotRequired[str]
    launcher: NotRequired[list[str]]
    manifest: NotRequired[Mapping[str, str]]
    host: NotRequired[list[HostFactData]]


def read_documents(payload: Payload) -> dict[str, Habits]:
    """Read every document by its name. Raises ConfigError."""
    names = (name for name in payload.names(DOCUMENTS_FOLDER) if name.endswith(".yaml"))
    found = {}
    for name in names:
        data = cast("DocumentData", _read(payload, f"{DOCUMENTS_FOLDER}/{name}", SCHEMA))
        short = name.removesuffix(".yaml")
        found[short] = _habits(short, data)
    return found


def read_reasons(payload: Payload) -> dict[str, Reason]:
    """Read the reasons for arguments that every image may have. Raises ConfigError."""
    data = cast("Mapping[str, Mapping[str, str]]", _read(payload, REASONS_FILE, REASONS))
    return {key: Reason(one["why"], one["without"], one["source"]) for key, one in data.items()}


def _read(payload: Payload, relative: str, schema: Schema) -> Mapping[str, object]:
    path: Path | None = payload.find(relative)
    if path is None:
        raise ConfigError.of(f"`{relative}` is missing", hint="install imagegen again")
    document = load(path, shown(path))
    if problems := check_schema(document, schema):
        raise ConfigError(*problems)
    return document.data


def _habits(name: str, data: DocumentData) -> Habits:
    return Habits(
        name=name,
        title=data["title"],
        source=data["source"],
        matrices=tuple(data.get("matrices", ())),
        registry=data.get("registry", ""),
        program=data.get("program", ""),
        interpreter=data.get("interpreter", ""),
        scripts={form: tuple(words) for form, words in data.get("scripts", {}).items()},
        order=tuple(data.get("order", ())),
        variables=tuple(data.get("variables", ())),
        over_tcp=data.get("over_tcp", False),
        dashes=data.get("dashes", ""),
        count=data.get("count", ""),
        model=data.get("model", ""),
        model_of_one=data.get("model_of_one", ""),
        interfaces=data.get("interfaces", {}),
        mpi_interface=data.get("mpi_interface", ""),
        hosts=data.get("hosts", ""),
        first_host=int(data.get("first_host", "0")),
        launcher=tuple(data.get("launcher", ())),
        manifest=data.get("manifest", {}),
        host=tuple(
            HostFact(one["name"], one["wants"], one["command"], data["source"])
            for one in data.get("host", ())
        ),
    )


def of_matrix(documents: Mapping[str, Habits], matrix: str) -> Habits:
    """Return how the document of a matrix writes its arguments, without its names.

    The names (registry, program, scripts, interfaces, hosts, manifest) are those of its own
    machines, which `--form` asks for.
    """
    for one in documents.values():
        if matrix in one.matrices and len(one.order) > MOST_BARE:
            return replace(
                Habits(name=one.name, title=one.title, source=one.source),
                order=one.order,
                variables=one.variables,
                over_tcp=one.over_tcp,
                dashes=one.dashes,
            )
    return Habits()


MOST_BARE = 2
"""The parts of a line that leaves everything to the defaults of mpirun: those of the lab."""
