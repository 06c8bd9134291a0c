"""Read artifacts.yaml, which lists vendor parts that no public archive has.

Its form is:

    artifacts:
      - name: lightcc
        version: 3.1.1
        file: light_horovod-3.1.1-cp38-cp38-linux_x86_64.whl
        path: vendor/light_horovod-3.1.1-cp38-cp38-linux_x86_64.whl   # or `url: https://…`
        sha256: 64 hexadecimal digits
        licence: where the part comes from, and who may use it
        size: 1234567   # bytes, if known
        os: ubuntu20.04 # if the file is for one OS release only

A `path` that is relative starts at the folder of artifacts.yaml.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypedDict, cast

from imagegen.config.document import Document, dotted
from imagegen.config.payload import ARTIFACTS_FILE, Payload, shown
from imagegen.config.schema_check import Schema, check_schema
from imagegen.config.yamlfile import load
from imagegen.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import NotRequired


def _text(pattern: str, description: str) -> Schema:
    return {"type": "string", "pattern": pattern, "description": description}


_LINE = r"^[^\x00-\x1f\x7f]+$"
_PROPERTIES = {
    "name": _text(r"^[a-z0-9][a-z0-9.+_-]*$", "a name of small letters, digits, `.+_-`"),
    "version": _text(r"^[0-9A-Za-z][0-9A-Za-z.+_-]*$", "a version"),
    "file": _text(r"^[A-Za-z0-9][A-Za-z0-9._+-]*$", "a file name of letters, digits, `._+-`"),
    "path": _text(_LINE, "a path"),
    "url": _text(r"^(https?|file)://[^\s#]+$", "an address such as `https://host/folder/file`"),
    "sha256": _text(r"^[0-9a-f]{64}$", "64 hexadecimal digits in small letters"),
    "licence": _text(_LINE, "a line of text"),
    "size": _text(r"^[1-9][0-9]*$", "a number of bytes"),
    "os": _text(r"^[a-z0-9][a-z0-9.]*$", "the id of an OS, such as `ubuntu20.04`"),
}
SCHEMA: Schema = {
    "type": "object",
    "required": ["artifacts"],
    "properties": {
        "artifacts": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name", "version", "file", "sha256", "licence"],
                "properties": _PROPERTIES,
                "additionalProperties": False,
            },
        }
    },
    "additionalProperties": False,
}


class ArtifactData(TypedDict):
    """An entry of artifacts.yaml, after the schema has accepted it."""

    name: str
    version: str
    file: str
    path: NotRequired[str]
    url: NotRequired[str]
    sha256: str
    licence: str
    size: NotRequired[str]
    os: NotRequired[str]


class ArtifactsData(TypedDict):
    """The data of artifacts.yaml, after the schema has accepted it."""

    artifacts: list[ArtifactData]


@dataclass(frozen=True)
class Artifact:
    """One vendor part: `path` or `url` is set; `file_name` is its name in a build.

    `os` is empty where the file is for every OS; `size_bytes` is 0 where unknown; `listed` and
    `line` are its place in artifacts.yaml.
    """

    name: str
    version: str
    file_name: str
    path: Path | None
    url: str
    sha256: str
    licence: str
    os: str
    size_bytes: int
    listed: str
    line: int


@dataclass(frozen=True)
class Artifacts:
    """All parts of one artifacts.yaml, by name, version and OS (empty: every OS)."""

    file: str = ARTIFACTS_FILE
    parts: Mapping[tuple[str, str, str], Artifact] = field(default_factory=dict)

    def find(self, name: str, version: str, os: str) -> Artifact | None:
        """Find the part for an image on an OS: a part for that OS wins over one for every OS."""
        return self.parts.get((name, version, os)) or self.parts.get((name, version, ""))


def read_artifacts(payload: Payload) -> Artifacts:
    """Read the parts of the first root that has an artifacts.yaml; none where no root has one.

    Raises ConfigError with every problem of the file.
    """
    path = payload.find(ARTIFACTS_FILE)
    if path is None:
        return Artifacts()
    found = load(path, shown(path))
    problems = check_schema(found, SCHEMA)
    document = cast("Document[ArtifactsData]", found)
    problems = problems or _contradictions(document)
    if problems:
        raise ConfigError(*problems)
    count = len(document.data["artifacts"])
    parts = [_artifact(document, index, path.parent) for index in range(count)]
    return Artifacts(document.file, {(p.name, p.version, p.os): p for p in parts})


def artifact_for(artifacts: Artifacts, name: str, version: str, os: str) -> Artifact:
    """Find the part of this name and version for an OS.

    Raises ConfigError where none is listed.
    """
    found = artifacts.find(name, version, os)
    if found is not None:
        return found
    others = ", ".join(f"{v} for {o}" if o else v for n, v, o in artifacts.parts if n == name)
    evidence = (f"it has `{name}` in: {others}",) if others else ()
    hint = "list it there: name, version, file, path or url, sha256, licence"
    text = f"the vendor part `{name}` {version} for {os} is not listed"
    raise ConfigError(Problem(text, artifacts.file, evidence=evidence, hint=hint))


def _artifact(document: Document[ArtifactsData], index: int, folder: Path) -> Artifact:
    row = document.data["artifacts"][index]
    return Artifact(
        name=row["name"],
        version=row["version"],
        file_name=row["file"],
        path=folder / row["path"] if "path" in row else None,
        url=row.get("url", ""),
        sha256=row["sha256"],
        licence=row["licence"],
        os=row.get("os", ""),
        size_bytes=int(row.get("size", 0)),
        listed=document.file,
        line=document.line(("artifacts", index)),
    )


def _contradictions(document: Document[ArtifactsData]) -> tuple[Problem, ...]:
    """Check what the schema cannot say in words: one place for each part, and each part once."""
    problems = []
    first: dict[tuple[str, str, str], int] = {}
    for index, row in enumerate(document.data["artifacts"]):
        where = ("artifacts", index)
        at = (document.file, document.line(where), dotted(where))
        if ("path" in row) == ("url" in row):
            text = "has both `path` and `url`" if "path" in row else "has no `path` and no `url`"
            problems.append(Problem(text, *at, hint="give one of the two"))
        known = first.setdefault((row["name"], row["version"], row.get("os", "")), at[1])
        if known != at[1]:
            text = f"`{row['name']}` {row['version']} is there twice, first on line {known}"
            problems.append(Problem(text, *at, hint="remove one of the two"))
    return tuple(problems)
