"""dockerfiles/{os,components} -> Catalog: all that the tool knows, every error at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from imagegen import constraint, schemas
from imagegen.errors import ConfigError, Problem
from imagegen.model import Catalog, Component, OsRelease, Release
from imagegen.payload import Payload, shown
from imagegen.yamlfile import Document, KeyPath, check_schema, dotted, load

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

OS_FOLDER = "dockerfiles/os"
COMPONENTS_FOLDER = "dockerfiles/components"


def read_catalog(payload: Payload) -> Catalog:
    """The catalog of all roots together.

    Raises ConfigError with every problem of every file.
    """
    problems: list[Problem] = []
    oses = _read_oses(payload, problems)
    components = _read_components(payload, problems)
    problems += _dangling_names(components, oses)
    if problems:
        raise ConfigError(*problems)
    return Catalog(oses, components)


def _read_checked(
    payload: Payload, relative: str, schema: Mapping[str, Any], problems: list[Problem]
) -> Document | None:
    path = payload.find(relative)
    if path is None:
        return None
    try:
        document = load(path, shown(path))
    except ConfigError as error:
        problems.extend(error.problems)
        return None
    found = check_schema(document, schema)
    problems.extend(found)
    return None if found else document


def _read_oses(payload: Payload, problems: list[Problem]) -> dict[str, OsRelease]:
    oses: dict[str, OsRelease] = {}
    for name in payload.names(OS_FOLDER):
        document = _read_checked(payload, f"{OS_FOLDER}/{name}", schemas.OS, problems)
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
    )


def _misnamed(document: Document, key: str, expected: str, name: str) -> Problem:
    return Problem(
        f"`{document.data[key]}` stands in `{name}`, so it would not be found by its name",
        file=document.file,
        line=document.line([key]),
        key=key,
        hint=f"rename it to `{expected}`, or correct `{key}`",
    )


def _read_components(payload: Payload, problems: list[Problem]) -> dict[str, Component]:
    components: dict[str, Component] = {}
    for name in payload.names(COMPONENTS_FOLDER):
        relative = f"{COMPONENTS_FOLDER}/{name}/component.yaml"
        document = _read_checked(payload, relative, schemas.COMPONENT, problems)
        if document is None:
            continue
        if document.data["name"] != name:
            problems.append(_misnamed(document, "name", document.data["name"], name))
        problems += _bad_releases(document)
        components[name] = _component(document)
    return components


def _bad_releases(document: Document) -> list[Problem]:
    problems = []
    for index, row in enumerate(document.data["releases"]):
        if not constraint.is_version(row["version"]):
            path: KeyPath = ("releases", index, "version")
            text = f"`{row['version']}` is not a version"
            problems.append(_problem(document, path, text, "write it as digits and dots"))
        for name, wishes in row.get("requires", {}).items():
            path = ("releases", index, "requires", name)
            for wish in _alternatives(wishes):
                why = "" if name == "os" else constraint.problem_with(wish)
                if why:
                    problems.append(_problem(document, path, f"`{wish}` {why}"))
    return problems


def _problem(document: Document, path: Sequence[str | int], text: str, hint: str = "") -> Problem:
    key = dotted(path)
    return Problem(text, file=document.file, line=document.line(path), key=key, hint=hint)


def _alternatives(wishes: str | Sequence[str]) -> tuple[str, ...]:
    return (wishes,) if isinstance(wishes, str) else tuple(wishes)


def _component(document: Document) -> Component:
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
        releases=tuple(_release(document, index) for index in range(len(data["releases"]))),
        file=document.file,
    )


def _contract(data: Mapping[str, Any]) -> dict[str, object]:
    contract: dict[str, object] = dict(data)
    if "ulimits" in data:
        contract["ulimits"] = {name: int(value) for name, value in data["ulimits"].items()}
    if "shm_bytes" in data:
        contract["shm_bytes"] = int(data["shm_bytes"])
    return contract


def _release(document: Document, index: int) -> Release:
    row = document.data["releases"][index]
    return Release(
        component=document.data["name"],
        version=row["version"],
        variant=row.get("variant", ""),
        requires={name: _alternatives(wish) for name, wish in row.get("requires", {}).items()},
        apt=row.get("apt", {}),
        build_apt=row.get("build_apt", {}),
        wheels=row.get("wheels", {}),
        facts=row.get("facts", {}),
        origin=row["origin"],
        source=row["source"],
        file=document.file,
        line=document.line(["releases", index]),
    )


def _dangling_names(
    components: Mapping[str, Component], oses: Mapping[str, OsRelease]
) -> list[Problem]:
    """Names that a component speaks of and the catalog does not have."""
    problems = []
    for component in components.values():
        asked = [(name, component.file, 0) for name in component.needs]
        for release in component.releases:
            asked += [(name, release.file, release.line) for name in release.requires]
            problems += [
                Problem(f"requires unknown OS `{os}`", file=release.file, line=release.line)
                for os in release.requires.get("os", ())
                if os not in oses
            ]
        problems += [
            Problem(f"speaks of unknown component `{name}`", file=file, line=line)
            for name, file, line in asked
            if name != "os" and name not in components
        ]
    return problems
