"""Propose rows for releases that an index lists and the catalog does not have.

A row has what file names say (Pythons, glibc) and what a wheel itself requires; a maintainer has to
add the rest. The catalog is not changed: builds use what is in it, never "latest". All rows
together can be written as a patch.
"""

from __future__ import annotations

import csv
import difflib
import io
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import yaml
from packaging.requirements import Requirement
from packaging.version import InvalidVersion, Version

from imagegen.sources.pip_index import IndexFile, listed_files
from imagegen.sources.wheels import taken_apart

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from imagegen.catalog.data import OneOrMore, ReleaseData
    from imagegen.catalog.tables import Leaf, Table
    from imagegen.model.catalog import Component

_CPYTHON = re.compile(r"cp(\d)(\d+)$")
_MANYLINUX = re.compile(r"manylinux_(\d+)_(\d+)_x86_64$")
_LEGACY = {"manylinux2014_x86_64": 17, "manylinux2010_x86_64": 12}
"""The minor version of glibc of each older name of manylinux. Source: PEP 600.

manylinux1 says 2.5, which many wheels of that name do not keep: those of PyTorch need 2.17.
"""

_UNSAID = "file names do not say what else it asks for: CUDA, driver, C++ standard …"


@dataclass(frozen=True)
class Proposal:
    """A release of a project that the catalog has no row for, and its files for x86_64."""

    project: str
    version: str
    files: tuple[IndexFile, ...]
    depends: tuple[str, ...] = field(default=())


def projects_of(component: Component) -> dict[str, set[str]]:
    """Map the projects of a component to the versions that its rows have.

    It is the project with the component's name, else those that have the same versions as the
    releases.
    """
    found: dict[str, set[str]] = {}
    for release in component.releases:
        for project, version in release.wheels.items():
            if _public(version) == _public(release.version):
                found.setdefault(project, set()).add(version)
    own = {name: known for name, known in found.items() if name == component.name}
    return own or found or {component.name: set()}


def proposals(
    project: str, known: Iterable[str], lines: Iterable[str], *, every: bool = False
) -> list[Proposal]:
    """List final releases that are not known, newest first; those between known ones, too.

    Releases older than all known ones are listed only with `every`. `lines` is the output of `pip
    index versions -vv`.
    """
    have = {Version(version.public) for text in known if (version := _parsed(text))}
    oldest = min(have, default=None)
    by_version: dict[Version, list[IndexFile]] = {}
    for file in listed_files(project, lines):
        version = _parsed(taken_apart(file.name)[0])
        if version and not version.is_prerelease and _for_x86_64(file):
            by_version.setdefault(version, []).append(file)
    return [
        Proposal(project, str(version), tuple(by_version[version]))
        for version in sorted(by_version, reverse=True)
        if version.public not in map(str, have) and (every or oldest is None or version > oldest)
    ]


def with_known_glibc(row: ReleaseData, component: Component) -> ReleaseData:
    """Add the glibc of the nearest older release that is known, where file names do not say it."""
    requires = dict(row.get("requires", {}))
    wanted = Version(row["version"])
    older = [
        release
        for release in component.releases
        if (version := _parsed(_public(release.version)))
        and version <= wanted
        and any(text.startswith(">=") for text in release.requires.get("glibc", ()))
    ]
    if "glibc" in requires or not older:
        return row
    nearest = max(older, key=lambda release: Version(_public(release.version)))
    glibc = list(nearest.requires["glibc"])
    note = f"glibc as {nearest.name}: file names do not say it"
    requires["glibc"] = glibc[0] if len(glibc) == 1 else glibc
    return {**row, "requires": requires, "notes": [*row.get("notes", ()), note]}


def platform_of(proposal: Proposal) -> tuple[str, str]:
    """Find the newest CPython (`3.13`) that a wheel is for, and its platform.

    The CPython is `3.12` for wheels of any Python; both are empty without a wheel.
    """
    wheels = [file for file in proposal.files if file.name.endswith(".whl")]
    tags = [tag for wheel in wheels for tag in taken_apart(wheel.name)[1]]
    pythons = _pythons(wheels)
    newest = f"cp{pythons[-1].replace('.', '')}" if pythons else ""
    fitting = [tag.platform for tag in tags if newest in ("", tag.interpreter)]
    return (pythons[-1] if pythons else "3.12", min(fitting)) if fitting else ("", "")


def exact_requirements(metadata: Mapping[str, object]) -> tuple[str, ...]:
    """List the exact versions that a wheel itself requires: `nvidia-nccl-cu12==2.26.2`."""
    texts = metadata.get("requires_dist", [])
    requirements = [Requirement(text) for text in texts] if isinstance(texts, list) else []
    return tuple(
        f"{one.name}{one.specifier}"
        for one in requirements
        if "extra" not in str(one.marker or "") and str(one.specifier).startswith("==")
    )


def row_of(proposal: Proposal, interpreter: str, asked: str) -> ReleaseData:
    """Write a release as a row of the catalog.

    `asked` is the day when the index was asked; `interpreter` is the name of the component that is
    Python.
    """
    wheels = [file for file in proposal.files if file.name.endswith(".whl")]
    notes = [_UNSAID] if not proposal.depends else []
    notes += [f"its metadata asks for {one}" for one in proposal.depends]
    names = sorted(file.name for file in proposal.files)
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    row: ReleaseData = {
        "version": proposal.version,
        "requires": _requires(wheels, interpreter),
        "wheels": {proposal.project: proposal.version},
        "notes": notes if wheels else [*notes, "no wheel: it is compiled from its source archive"],
        "origin": f"pip {proposal.project}=={proposal.version}",
        "source": f"the index that pip is set to, asked {asked}: {names[0]}{more}",
    }
    if not row["requires"]:
        del row["requires"]
    return row


def _requires(wheels: Sequence[IndexFile], interpreter: str) -> dict[str, OneOrMore]:
    """Read the required Pythons and glibc from the names of wheels."""
    requires: dict[str, OneOrMore] = {}
    if pythons := _pythons(wheels):
        requires[interpreter] = pythons
    if floor := _glibc(wheels):
        requires["glibc"] = f">=2.{floor}"
    return requires


def as_text(component: Component, rows: Sequence[ReleaseData], table: Table | None) -> str:
    """Write rows to paste into a component's CSV file, or into its YAML if it has none."""
    if not rows:
        return f"# {component.name}: the catalog has all that the index lists"
    kinds = [_kind_of(row, table) for row in rows] if table else [""]
    return as_csv(table, rows, kinds) if table and all(kinds) else as_yaml(component, rows)


def _kind_of(row: ReleaseData, table: Table) -> str:
    """Find the kind of line whose template has the row's wheel; empty if there is none.

    A kind of its name comes first, then one for pip's default index.
    """
    project = next(iter(row.get("wheels", {})), "")
    of_project = {
        kind: (kind != project, any(leaf.path[0] == "index" for leaf in leaves))
        for kind, leaves in table.templates().items()
        if any(leaf.path == ("wheels", project) or _names_wheel(leaf) for leaf in leaves)
    }
    return min(of_project, key=lambda kind: of_project[kind], default="")


def _names_wheel(leaf: Leaf) -> bool:
    """Say whether a column has the name of a wheel."""
    return leaf.path[0] == "wheels" and leaf.path_has_columns


def _cells(table: Table, row: ReleaseData, kind: str) -> dict[str, str]:
    cells = table.cells_of(kind, cast("Mapping[str, object]", row))
    for leaf in table.templates()[kind]:
        if _names_wheel(leaf):
            cells[leaf.path[1].strip("{}")] = next(iter(row.get("wheels", {})), "")
    return cells


def as_csv(table: Table, rows: Sequence[ReleaseData], kinds: Sequence[str]) -> str:
    """Write lines for a CSV file below its header; what has no column is in comments above."""
    head = [f"# for {table.file}, to be completed"]
    for row in rows:
        notes = "; ".join([*row.get("notes", ()), row["source"]])
        head.append(f"# {row['version']}: {notes}")
    return "\n".join([*head, _lines(table, [table.header()], []), _lines(table, [], rows, kinds)])


def _lines(
    table: Table,
    texts: Sequence[Sequence[str]],
    rows: Sequence[ReleaseData],
    kinds: Sequence[str] = (),
) -> str:
    """Write texts and rows as lines of a CSV file, the last one without its end."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(texts)
    writer = csv.DictWriter(
        text, table.header(), restval="", extrasaction="ignore", lineterminator="\n"
    )
    for row, kind in zip(rows, kinds, strict=True):
        writer.writerow(_cells(table, row, kind))
    return text.getvalue().rstrip("\n")


def as_patch(table: Table, rows: Sequence[ReleaseData]) -> str:
    """Write a patch that adds rows to a CSV file; empty where none has a kind there."""
    kinds = [_kind_of(row, table) for row in rows]
    added = [(row, kind) for row, kind in zip(rows, kinds, strict=True) if kind]
    if not added:
        return ""
    old = table.path.read_text(encoding="utf-8-sig").splitlines(keepends=True)
    lines = _lines(table, [], [row for row, _ in added], [kind for _, kind in added])
    new = [*old, *(f"{line}\n" for line in lines.split("\n"))]
    name = table.file[max(table.file.rfind("dockerfiles/"), 0) :]
    return "".join(difflib.unified_diff(old, new, f"a/{name}", f"b/{name}"))


def as_yaml(component: Component, rows: Sequence[ReleaseData]) -> str:
    """Write rows to paste below `releases:` of a component.yaml."""
    plain = [dict(row) for row in rows]
    text = yaml.safe_dump(
        plain, sort_keys=False, width=1000, allow_unicode=True, default_flow_style=None
    )
    head = f"# for `releases:` in {component.file}, to be completed"
    return "\n".join([head, *(f"  {line}" for line in text.splitlines())])


def _parsed(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None


def _public(text: str) -> str:
    return text.partition("+")[0]


def _for_x86_64(file: IndexFile) -> bool:
    """Say whether a file is for x86_64; source archives are, as they can be compiled."""
    _, tags = taken_apart(file.name)
    return not tags or any(
        tag.platform == "any" or (tag.platform.endswith("x86_64") and "linux" in tag.platform)
        for tag in tags
    )


def _pythons(wheels: Sequence[IndexFile]) -> list[str]:
    """List the CPythons that wheels are for; none where one wheel is for any Python 3."""
    tags = [tag for wheel in wheels for tag in taken_apart(wheel.name)[1]]
    if any(tag.interpreter.startswith("py") or tag.abi == "abi3" for tag in tags):
        return []
    found = {(int(m[1]), int(m[2])) for tag in tags if (m := _CPYTHON.match(tag.interpreter))}
    return [f"{major}.{minor}" for major, minor in sorted(found)]


def _glibc(wheels: Sequence[IndexFile]) -> int:
    """Find the minor version of glibc that every wheel runs on; 0 where their names do not say."""
    floors = []
    for wheel in wheels:
        minors = [_minor(tag.platform) for tag in taken_apart(wheel.name)[1]]
        floors += [min(known)] if (known := [minor for minor in minors if minor]) else []
    return max(floors, default=0)


def _minor(platform: str) -> int:
    match = _MANYLINUX.match(platform)
    return int(match[2]) if match else _LEGACY.get(platform, 0)
