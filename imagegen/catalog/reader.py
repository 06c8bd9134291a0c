"""Read `dockerfiles/{os,components,virtual}` as a Catalog, and report all errors at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from imagegen.catalog.claims import double_claims
from imagegen.catalog.component import component_of
from imagegen.catalog.known_bad import read_known_bad, unknown_names
from imagegen.catalog.proofs import read_proofs
from imagegen.catalog.references import dangling_names, unknown_suites
from imagegen.catalog.rows import read_releases
from imagegen.catalog.rules import rule_names
from imagegen.catalog.tables import Table
from imagegen.config import schemas
from imagegen.config.payload import (
    COMPONENTS_FOLDER,
    OS_FOLDER,
    RELEASES_FILE,
    VIRTUAL_FOLDER,
    Payload,
    shipped_root,
    shown,
)
from imagegen.config.schema_check import check_schema
from imagegen.config.yamlfile import load
from imagegen.errors import ConfigError, Problem
from imagegen.model.catalog import Catalog, Component
from imagegen.model.release import OsRelease, Release

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from imagegen.catalog.data import (
        ComponentData,
        ComponentDocument,
        OsDocument,
        VirtualData,
        VirtualDocument,
    )
    from imagegen.config.document import Document
    from imagegen.config.schema_check import Schema


def read_catalog(payload: Payload, *, check_shipped: bool = False) -> Catalog:
    """Read the catalog of all roots together.

    The files that travel with the tool were checked against the schema by its tests. To check them
    again takes three times as long as to read them, so it is done only with `check_shipped`.
    Raises ConfigError with every problem of every file.
    """
    trusted = None if check_shipped else shipped_root()
    problems: list[Problem] = []
    oses = _read_oses(payload, problems, trusted)
    components = _read_components(payload, problems, trusted)
    virtual = _read_virtual(payload, problems, trusted)
    known_bad = read_known_bad(payload, problems)
    proofs = read_proofs(payload, problems)
    catalog = Catalog(oses, components, virtual, rule_names(payload), known_bad, proofs)
    problems += unknown_names(catalog)
    folders = (OS_FOLDER, COMPONENTS_FOLDER, VIRTUAL_FOLDER)
    files = {name.removesuffix(".yaml") for folder in folders for name in payload.names(folder)}
    problems += dangling_names(catalog, files)
    problems += unknown_suites(components.values(), payload)
    problems += double_claims(components)
    if problems:
        raise ConfigError(*problems)
    return catalog


def _read_checked(
    payload: Payload,
    relative: str,
    schema: Schema,
    problems: list[Problem],
    trusted: Path | None,
) -> Document[Mapping[str, object]] | None:
    path = payload.find(relative)
    if path is None:
        return None
    try:
        document = load(path, shown(path))
    except ConfigError as error:
        problems.extend(error.problems)
        return None
    if _trusts(payload, relative, trusted):
        return document
    found = check_schema(document, schema)
    problems.extend(found)
    return None if found else document


def _trusts(payload: Payload, relative: str, trusted: Path | None) -> bool:
    """Say whether a file travels with the tool, and so was checked before."""
    path = payload.find(relative)
    return trusted is not None and path is not None and path.is_relative_to(trusted)


def _read_oses(
    payload: Payload, problems: list[Problem], trusted: Path | None
) -> dict[str, OsRelease]:
    oses: dict[str, OsRelease] = {}
    for name in payload.names(OS_FOLDER):
        found = _read_checked(payload, f"{OS_FOLDER}/{name}", schemas.OS, problems, trusted)
        if found is None:
            continue
        document = cast("OsDocument", found)
        release = _os_release(document)
        if f"{release.id}.yaml" != name:
            problems.append(_misnamed(document, "id", release.id, f"{release.id}.yaml", name))
        oses[release.id] = release
    return oses


def _os_release(document: OsDocument) -> OsRelease:
    data = document.data
    return OsRelease(
        id=data["id"],
        family=data["family"],
        os_id=data["release"]["ID"],
        version_id=data["release"]["VERSION_ID"],
        suite=data["suite"],
        image=data["image"],
        glibc=data["glibc"],
        lib_dir=data["lib_dir"],
        bootstrap=data["bootstrap"],
        source=data["source"],
        file=document.file,
        notes=tuple(data.get("notes", ())),
        missing=data.get("missing", ""),
    )


def _misnamed(
    document: Document[Mapping[str, object]], key: str, value: str, expected: str, name: str
) -> Problem:
    return Problem(
        f"`{value}` is in `{name}`, so it would not be found by its name",
        file=document.file,
        line=document.line([key]),
        key=key,
        hint=f"rename it to `{expected}`, or correct `{key}`",
    )


def _read_components(
    payload: Payload, problems: list[Problem], trusted: Path | None
) -> dict[str, Component]:
    components: dict[str, Component] = {}
    for name in payload.names(COMPONENTS_FOLDER):
        relative = f"{COMPONENTS_FOLDER}/{name}/component.yaml"
        found = _read_checked(payload, relative, schemas.COMPONENT, problems, trusted)
        if found is None:
            continue
        document = cast("ComponentDocument", found)
        own_name = document.data["name"]
        if own_name != name:
            problems.append(_misnamed(document, "name", own_name, own_name, name))
        csv = f"{COMPONENTS_FOLDER}/{name}/{RELEASES_FILE}"
        releases = _read_releases(payload, document, (relative, csv), problems, trusted)
        components[name] = component_of(document.data, document.file, releases)
    return components


def _read_releases(
    payload: Payload,
    document: ComponentDocument | VirtualDocument,
    relative: tuple[str, str],
    problems: list[Problem],
    trusted: Path | None,
) -> tuple[Release, ...]:
    """Read the releases of a YAML file and of the CSV file beside it, by their relative paths."""
    csv = payload.find(relative[1])
    if "rows" not in document.data:
        # A YAML file of an overlay without `rows` has no CSV file.
        if csv and payload.rank(relative[1]) <= payload.rank(relative[0]):
            text = f"no `rows` in {document.file} says what its columns mean"
            problems.append(Problem(text, shown(csv), 1, hint="add `rows`, or remove this file"))
        csv = None
    elif csv is None:
        text = f"there is no {relative[1]} that has such rows"
        line = document.line(["rows"])
        problems.append(Problem(text, document.file, line, "rows", hint="add the file"))
    table = Table(csv, shown(csv), document.data) if csv else None
    trusts = all(_trusts(payload, one, trusted) for one in (relative if csv else relative[:1]))
    releases, wrong = read_releases(document, table, checked=not trusts)
    problems += wrong
    return releases


def read_table(payload: Payload, name: str) -> Table | None:
    """Read the CSV file of a component's releases, if there is one, with its columns' meaning."""
    folder = f"{COMPONENTS_FOLDER}/{name}"
    document, csv = (
        payload.find(f"{folder}/component.yaml"),
        payload.find(f"{folder}/{RELEASES_FILE}"),
    )
    if document is None or csv is None:
        return None
    data = cast("ComponentDocument", load(document, shown(document))).data
    return Table(csv, shown(csv), data) if "rows" in data else None


def _read_virtual(
    payload: Payload, problems: list[Problem], trusted: Path | None
) -> dict[str, Component]:
    found: dict[str, Component] = {}
    for name in payload.names(VIRTUAL_FOLDER):
        if name.endswith(".csv"):
            continue
        relative = f"{VIRTUAL_FOLDER}/{name}"
        read = _read_checked(payload, relative, schemas.VIRTUAL, problems, trusted)
        if read is None:
            continue
        document = cast("VirtualDocument", read)
        own_name = document.data["name"]
        if f"{own_name}.yaml" != name:
            problems.append(_misnamed(document, "name", own_name, f"{own_name}.yaml", name))
        csv = f"{VIRTUAL_FOLDER}/{own_name}.csv"
        releases = _read_releases(payload, document, (relative, csv), problems, trusted)
        data = _as_component(document.data)
        found[own_name] = component_of(data, document.file, releases)
    return found


def _as_component(data: VirtualData) -> ComponentData:
    """Make a component of a virtual name: it has no layer, so it takes no time and has no suite."""
    title = data["title"]
    return {"name": data["name"], "title": title, "seconds": "0", "suites": [], "releases": []}
