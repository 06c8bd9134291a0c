"""dockerfiles/{os,components} -> Catalog: all that the tool knows, every error at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from imagegen.catalog.rows import read_releases
from imagegen.config import schemas
from imagegen.config.document import Document
from imagegen.config.payload import (
    COMPONENTS_FOLDER,
    OS_FOLDER,
    VIRTUAL_FOLDER,
    Payload,
    shipped_root,
    shown,
)
from imagegen.config.yamlfile import check_schema, load
from imagegen.errors import ConfigError, Problem
from imagegen.model.catalog import (
    Catalog,
    Component,
    OsRelease,
    Release,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

PROVIDED = ("glibc", "compiler", "driver")
"""Names that an OS provides, and the driver of a host, which only a wish knows."""


def read_catalog(payload: Payload, *, check_shipped: bool = False) -> Catalog:
    """The catalog of all roots together.

    What travels with the tool was held against the schema by its own tests; to do it again on every
    start would cost more than all the rest, so it is done only for `check_shipped`. Raises
    ConfigError with every problem of every file.
    """
    trusted = None if check_shipped else shipped_root()
    problems: list[Problem] = []
    oses = _read_oses(payload, problems, trusted)
    components = _read_components(payload, problems, trusted)
    virtual = _read_virtual(payload, problems, trusted)
    problems += _dangling_names(components, virtual, oses)
    if problems:
        raise ConfigError(*problems)
    return Catalog(oses, components, virtual)


def _read_checked(
    payload: Payload,
    relative: str,
    schema: Mapping[str, Any],
    problems: list[Problem],
    trusted: Path | None,
) -> Document | None:
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
    """Whether a file is one that travels with the tool, and was checked before it did."""
    path = payload.find(relative)
    return trusted is not None and path is not None and path.is_relative_to(trusted)


def _read_oses(
    payload: Payload, problems: list[Problem], trusted: Path | None
) -> dict[str, OsRelease]:
    oses: dict[str, OsRelease] = {}
    for name in payload.names(OS_FOLDER):
        document = _read_checked(payload, f"{OS_FOLDER}/{name}", schemas.OS, problems, trusted)
        if document is None:
            continue
        release = _os_release(document)
        if f"{release.id}.yaml" != name:
            problems.append(_misnamed(document, "id", f"{release.id}.yaml", name))
        oses[release.id] = release
    return oses


def _os_release(document: Document) -> OsRelease:
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
        gcc=data.get("gcc", ""),
        notes=tuple(data.get("notes", ())),
    )


def _misnamed(document: Document, key: str, expected: str, name: str) -> Problem:
    return Problem(
        f"`{document.data[key]}` stands in `{name}`, so it would not be found by its name",
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
        document = _read_checked(payload, relative, schemas.COMPONENT, problems, trusted)
        if document is None:
            continue
        if document.data["name"] != name:
            problems.append(_misnamed(document, "name", document.data["name"], name))
        trusts = _trusts(payload, relative, trusted)
        releases, wrong = read_releases(document, checked=not trusts)
        problems += wrong
        components[name] = _component(document, releases)
    return components


def _read_virtual(
    payload: Payload, problems: list[Problem], trusted: Path | None
) -> dict[str, Component]:
    found: dict[str, Component] = {}
    for name in payload.names(VIRTUAL_FOLDER):
        relative = f"{VIRTUAL_FOLDER}/{name}"
        document = _read_checked(payload, relative, schemas.VIRTUAL, problems, trusted)
        if document is None:
            continue
        if f"{document.data['name']}.yaml" != name:
            problems.append(_misnamed(document, "name", f"{document.data['name']}.yaml", name))
        trusts = _trusts(payload, relative, trusted)
        releases, wrong = read_releases(document, checked=not trusts)
        problems += wrong
        data = {"seconds": "0", "suites": (), **document.data}
        found[document.data["name"]] = _component(Document(data, document.file), releases)
    return found


def _component(document: Document, releases: tuple[Release, ...]) -> Component:
    data = document.data
    return Component(
        name=data["name"],
        title=data["title"],
        needs=tuple(data.get("needs", ())),
        seconds=float(data["seconds"]),
        env=data.get("env", {}),
        path=tuple(data.get("path", ())),
        suites=tuple(data["suites"]),
        contract=_contract(data.get("contract", {})),
        entrypoint=data.get("entrypoint", ""),
        trees=data.get("trees", {}),
        releases=releases,
        file=document.file,
        installs=tuple(data.get("installs", ())),
        aliases=data.get("aliases", {}),
        one_of=tuple(data.get("one_of", ())),
        rules=data.get("rules", {}),
        megabytes=_megabytes(data.get("megabytes", {})),
        churn=float(data.get("churn", Component.churn)),
    )


def _megabytes(data: str | Mapping[str, str]) -> dict[str, float]:
    """By a word of a layer's name, such as `gpu`; under no word for all of them."""
    return {
        word: float(size) for word, size in ({"": data} if isinstance(data, str) else data).items()
    }


def _contract(data: Mapping[str, Any]) -> dict[str, object]:
    contract: dict[str, object] = dict(data)
    if "ulimits" in data:
        contract["ulimits"] = {name: int(value) for name, value in data["ulimits"].items()}
    if "shm_bytes" in data:
        contract["shm_bytes"] = int(data["shm_bytes"])
    return contract


def _dangling_names(
    components: Mapping[str, Component],
    virtual: Mapping[str, Component],
    oses: Mapping[str, OsRelease],
) -> list[Problem]:
    """Names that a component speaks of and the catalog does not have."""
    every = [*components.values(), *virtual.values()]
    known = {"os", *PROVIDED, *components, *virtual}
    known |= {name for one in every for release in one.releases for name in release.provides}
    problems = []
    for component in every:
        asked = [(name, component.file, 0) for name in (*component.needs, *component.one_of)]
        for release in component.releases:
            wishes = {**release.requires, **release.constrains, **release.pairs}
            wishes |= {**release.known, **release.warns}
            asked += [(name, release.file, release.line) for name in wishes]
            problems += [
                Problem(f"requires unknown OS `{os}`", file=release.file, line=release.line)
                for os in wishes.get("os", ())
                if os not in (*oses, "any", "none")
            ]
        problems += [
            Problem(f"speaks of unknown component `{name}`", file=file, line=line)
            for name, file, line in asked
            if name not in known
        ]
    return problems
