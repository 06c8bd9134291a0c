"""`imagegen catalog` shows the releases that are known, and proposes rows for new ones."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from imagegen.catalog.reader import read_table
from imagegen.catalog.rules import read_rules
from imagegen.config.payload import COMPONENTS_FOLDER, open_payload
from imagegen.engine.host.archives import pip_metadata, pip_says
from imagegen.errors import ConfigError, NothingSelectedError
from imagegen.model.catalog import COMPILER, INTERPRETER
from imagegen.model.constraint import is_version, version_key
from imagegen.sources.refresh import (
    as_patch,
    as_text,
    exact_requirements,
    platform_of,
    projects_of,
    proposals,
    row_of,
    with_known_glibc,
)
from imagegen.text import few_like
from imagegen.workflow.project import Project

if TYPE_CHECKING:
    from collections.abc import Mapping

    from imagegen.catalog.data import ReleaseData
    from imagegen.console.console import Console
    from imagegen.model.catalog import Catalog, Component
    from imagegen.model.release import Release
    from imagegen.sources.refresh import Proposal


def show(
    component: str | None, overlay: Path | None, console: Console, *, verbose: bool = False
) -> None:
    """Show all components, the distribution releases (`os`), or every release of one component.

    `verbose` adds the source of each fact, with its file and line.
    """
    catalog = Project(overlay).catalog
    if component is None:
        _show_all(catalog, console)
    elif component == "os":
        _show_oses(catalog, console, verbose=verbose)
    else:
        _show_one(_find(catalog, component), console, verbose=verbose)


def show_rules(overlay: Path | None, console: Console) -> None:
    """List all rules by name."""
    rules = read_rules(open_payload(overlay))
    console.data([asdict(rule) for rule in rules])
    console.table(("rule", "what it says"), [(rule.name, rule.what) for rule in rules])


def show_rule(name: str, overlay: Path | None, console: Console) -> None:
    """Show what one rule says, why, and its source."""
    rules = {rule.name: rule for rule in read_rules(open_payload(overlay))}
    if name not in rules:
        near = get_close_matches(name, rules, 1)
        hint = f"did you mean `{near[0]}`?" if near else "imagegen catalog --rules"
        raise NothingSelectedError.of(f"there is no rule `{name}`", hint=hint)
    rule = rules[name]
    console.data(asdict(rule))
    console.line(f"rule {rule.name}: {rule.what}")
    console.line(f"why: {rule.why}")
    for source in rule.source:
        console.line(f"source: {source}")


def show_known_bad(overlay: Path | None, console: Console) -> None:
    """List all combinations that are known to fail: what, the symptom, what helps, the source."""
    rows = Project(overlay).catalog.known_bad
    today = datetime.now(timezone.utc).date().isoformat()
    console.data([{**asdict(row), "expired": row.expires <= today} for row in rows])
    for row in rows:
        old = f"; look again: this is from before {row.expires}" if row.expires <= today else ""
        console.line(f"{row.name}: {', '.join(row.what)}{old}")
        console.line(f"  symptom: {row.symptom}")
        console.line(f"  workaround: {row.workaround}")
        console.line(f"  source: {' '.join(row.source)}")


def show_proofs(overlay: Path | None, console: Console) -> None:
    """List what was built and validated: the result of each cell, and its pins."""
    proofs = Project(overlay).catalog.proofs
    console.data([asdict(proof) for proof in proofs])
    rows = [
        (
            f"{one.matrix}/{one.cell}",
            "passed" if one.passed else f"failed: {', '.join(one.failed)}",
            one.tier,
            one.at[:10],
            ", ".join(f"{name} {version}" for name, version in one.pins.items()),
        )
        for one in proofs
    ]
    console.table(("cell", "result", "tier", "day", "pins"), rows)


PATCH = Path("catalog-refresh.diff")
"""The file of `refresh --write`, in the working directory."""


@dataclass(frozen=True)
class RefreshOptions:
    """The options of the command line, with the same names.

    Without a component, `every` means all components; with one, also its releases older than all
    known ones. With `write`, the rows become a patch.
    """

    component: str | None = None
    every: bool = False
    write: bool = False
    limit: int = 10
    metadata: bool = False
    overlay: Path | None = None


def refresh(options: RefreshOptions, console: Console) -> None:
    """Propose rows for releases that the index of this host's pip has and the catalog does not.

    Raises ConfigError if neither a component nor all of them are asked for.
    """
    project = Project(options.overlay)
    if options.component is None and not options.every:
        text = "no component is named"
        raise ConfigError.of(text, hint="`imagegen catalog refresh torch`, or `--all` for all")
    named = (
        [_find(project.catalog, options.component)] if options.component else _with_wheels(project)
    )
    patches = []
    data: list[ReleaseData] = []
    for component in named:
        rows, left = _rows(component, project, options, console)
        data += rows
        table = read_table(project.payload, component.name)
        patches.append(as_patch(table, rows) if table else "")
        if not options.write:
            console.line(as_text(component, rows, table))
        if left:
            of = "" if options.component else f"{component.name}: "
            console.note(f"{of}{left} more: --limit {left + len(rows)}")
    console.data(data)
    if options.write:
        _write("".join(patches), console)


def _with_wheels(project: Project) -> list[Component]:
    """List the components that have wheels under versions of their own."""
    every = project.catalog.components.values()
    return [one for one in every if any(known for known in projects_of(one).values())]


def _rows(
    component: Component, project: Project, options: RefreshOptions, console: Console
) -> tuple[list[ReleaseData], int]:
    """Make the rows to propose for a component, and count those over the limit."""
    older = options.every and options.component is not None
    proposed = _proposals(component, every=older)
    shown = proposed[: options.limit]
    if options.metadata:
        shown = [_with_metadata(one) for one in shown]
    day = datetime.now(timezone.utc).date().isoformat()
    interpreter = project.catalog.with_role(INTERPRETER)
    rows = [with_known_glibc(row_of(one, interpreter, day), component) for one in shown]
    if not older and not rows and options.component is None:
        console.note(f"{component.name}: nothing new")
    return rows, len(proposed) - len(shown)


def _write(patch: str, console: Console) -> None:
    """Write the patch to review.

    Raises ConfigError where it cannot be written.
    """
    if not patch:
        console.line("the catalog has all that the index lists: nothing is written")
        return
    try:
        PATCH.write_text(patch, encoding="utf-8")
    except OSError as error:
        raise ConfigError.of(f"{PATCH} cannot be written: {error.strerror}") from error
    console.line(f"wrote {PATCH}: complete its rows, then `git apply {PATCH}`")


def _find(catalog: Catalog, name: str) -> Component:
    every = {**catalog.components, **catalog.virtual}
    if name in every:
        return every[name]
    near = get_close_matches(name, every, 1)
    raise NothingSelectedError.of(
        f"the catalog has no component `{name}`",
        evidence=[f"known: {few_like(name, ['os', *sorted(every)], 'imagegen catalog')}"],
        hint=f"did you mean `{near[0]}`?" if near else "imagegen catalog",
    )


def _proposals(component: Component, *, every: bool) -> list[Proposal]:
    found = [
        one
        for project, known in projects_of(component).items()
        for one in proposals(project, known, pip_says(project, {}), every=every)
    ]
    return sorted(found, key=lambda one: one.project)


def _with_metadata(proposal: Proposal) -> Proposal:
    """Add the exact versions that the wheel of a proposal itself requires."""
    python, tag = platform_of(proposal)
    if not tag:
        return proposal
    metadata = pip_metadata(proposal.project, proposal.version, python, tag)
    return replace(proposal, depends=exact_requirements(metadata))


def _show_all(catalog: Catalog, console: Console) -> None:
    every = [*catalog.components.values(), *catalog.virtual.values()]
    rows = [
        (one.name, len(one.releases), "" if one.name in catalog.virtual else _span(one), one.title)
        for one in every
    ]
    console.data(
        [dict(zip(("name", "releases", "span", "title"), row, strict=True)) for row in rows]
    )
    console.table(
        ("component", "releases", "from .. to", "what it is"),
        [("os", str(len(catalog.os)), "", "distribution releases"),
         *((name, str(count), span, title) for name, count, span, title in rows)],
    )  # fmt: skip


def _span(component: Component) -> str:
    versions = [one.version for one in component.releases if is_version(one.version)]
    if not versions:
        return ""
    return f"{min(versions, key=version_key)} .. {max(versions, key=version_key)}"


def _show_oses(catalog: Catalog, console: Console, *, verbose: bool) -> None:
    oses = [catalog.os[name] for name in sorted(catalog.os)]
    own = {name: row.provided(COMPILER) for name, row in catalog.compilers.items()}
    console.data(
        [{"id": one.id, "glibc": one.glibc, COMPILER: own.get(one.id, ""), "image": one.image,
          "notes": list(one.notes), "source": one.source} for one in oses]
    )  # fmt: skip
    columns = ("os", "glibc", COMPILER, "image", "source")
    rows = [(one.id, one.glibc, own.get(one.id, ""), one.image, one.source) for one in oses]
    few = slice(None if verbose else -1)
    console.table(columns[few], [row[few] for row in rows])


def _show_one(component: Component, console: Console, *, verbose: bool) -> None:
    console.data([_row(release) for release in component.releases])
    columns = ("version", "variant", "needs", "where it comes from", "row", "source")
    rows = [
        (
            release.version,
            release.variant,
            "; ".join(_needs(release)),
            release.origin,
            release.row.removeprefix(f"{COMPONENTS_FOLDER}/{component.name}/"),
            release.source + (" (medium confidence)" if release.confidence != "high" else ""),
        )
        for release in component.releases
    ]
    few = slice(None if verbose else -2)
    title = f"{component.name}: {component.title}"
    console.table(columns[few], [row[few] for row in rows], title=title)


def _needs(release: Release) -> list[str]:
    kinds: tuple[tuple[str, Mapping[str, tuple[str, ...]]], ...] = (
        ("", release.requires),
        ("", release.limits),
        ("", release.built_for),
        ("known with ", release.known_with),
        ("made for ", release.recommends),
    )
    return [
        f"{kind}{name} {' or '.join(constraints)}"
        for kind, asked in kinds
        for name, constraints in asked.items()
    ]


def _row(release: Release) -> dict[str, object]:
    return {name: value for name, value in asdict(release).items() if value not in ((), {}, "")}
