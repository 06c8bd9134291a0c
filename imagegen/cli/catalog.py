"""`imagegen catalog [COMPONENT]`: what the tool knows, row by row, and what it could know."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from imagegen.cli import options
from imagegen.errors import NothingSelectedError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from imagegen.console.console import Console
    from imagegen.model.catalog import Catalog, Component, Release
    from imagegen.sources.refresh import Proposal


class _Catalog(click.Group):
    """`catalog` and `catalog COMPONENT` show; `refresh` is the one word that is no component."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args[:1] not in (["refresh"], ["--help"], ["-h"]):
            args = ["show", *args]
        return super().parse_args(ctx, args)


@click.group("catalog", cls=_Catalog)
def command() -> None:
    """All components, or every release of one with what it needs and the source of the fact."""


@command.command("show")
@click.argument("component", required=False)
@options.common
def show(component: str | None, console: Console, overlay: Path | None) -> None:
    """All components, or every release of one."""
    from imagegen.catalog.reader import read_catalog
    from imagegen.config.payload import open_payload

    catalog = read_catalog(open_payload(overlay))
    if component is None:
        _all(catalog, console)
    elif component == "os":
        _oses(catalog, console)
    else:
        _one(_find(catalog, component), console)


@command.command("refresh")
@click.argument("component")
@click.option("--all", "every", is_flag=True, help="also releases older than the newest known")
@click.option("--limit", type=click.IntRange(1), default=10, show_default=True, help="most rows")
@click.option(
    "--metadata",
    is_flag=True,
    help="also what each wheel asks for by itself (pip before 23.3 downloads it whole for that)",
)
@options.common
def refresh(
    component: str,
    every: bool,
    limit: int,
    metadata: bool,
    console: Console,
    overlay: Path | None,
) -> None:
    """Propose rows for releases that the index of this host's pip has and the catalog has not.

    They are printed, never written: a maintainer completes and checks them.
    """
    from datetime import datetime, timezone

    from imagegen.catalog.reader import read_catalog
    from imagegen.config.payload import open_payload
    from imagegen.sources.refresh import as_yaml, row_of

    found = _find(read_catalog(open_payload(overlay)), component)
    proposed = _proposals(found, every)
    shown = [_completed(one) for one in proposed[:limit]] if metadata else proposed[:limit]
    day = datetime.now(timezone.utc).date().isoformat()
    rows = [row_of(one, day) for one in shown]
    console.data(rows)
    console.line(as_yaml(found, rows))
    if len(proposed) > limit:
        console.note(f"{len(proposed) - limit} more: --limit {len(proposed)}")


def _proposals(component: Component, every: bool) -> list[Proposal]:
    from imagegen.engine.host.archives import pip_says
    from imagegen.sources.refresh import projects_of, proposals

    found = [
        one
        for project, known in projects_of(component).items()
        for one in proposals(project, known, pip_says(project, {}), every=every)
    ]
    return sorted(found, key=lambda one: one.project)


def _completed(proposal: Proposal) -> Proposal:
    from dataclasses import replace

    from imagegen.engine.host.archives import pip_metadata
    from imagegen.sources.refresh import exact_wishes, platform_of

    python, tag = platform_of(proposal)
    if not tag:
        return proposal
    told = pip_metadata(proposal.project, proposal.version, python, tag)
    return replace(proposal, depends=exact_wishes(told))


def _find(catalog: Catalog, name: str) -> Component:
    from difflib import get_close_matches

    every = {**catalog.components, **catalog.virtual}
    if name in every:
        return every[name]
    near = get_close_matches(name, every, 1)
    raise NothingSelectedError.of(
        f"the catalog has no component `{name}`",
        evidence=[f"known: os, {', '.join(sorted(every))}"],
        hint=f"did you mean `{near[0]}`?" if near else "imagegen catalog",
    )


def _all(catalog: Catalog, console: Console) -> None:
    every = [*catalog.components.values(), *catalog.virtual.values()]
    rows = [(one.name, len(one.releases), _span(one), one.title) for one in every]
    console.data(
        [dict(zip(("name", "releases", "span", "title"), row, strict=True)) for row in rows]
    )
    console.table(
        ("component", "releases", "from .. to", "what it is"),
        [("os", str(len(catalog.os)), "", "distribution releases"),
         *((name, str(count), span, title) for name, count, span, title in rows)],
    )  # fmt: skip


def _span(component: Component) -> str:
    from imagegen.model.constraint import is_version, version_key

    versions = [one.version for one in component.releases if is_version(one.version)]
    if not versions:
        return ""
    return f"{min(versions, key=version_key)} .. {max(versions, key=version_key)}"


def _oses(catalog: Catalog, console: Console) -> None:
    oses = [catalog.os[name] for name in sorted(catalog.os)]
    console.data(
        [{"id": one.id, "glibc": one.glibc, "gcc": one.gcc, "image": one.image,
          "notes": list(one.notes), "source": one.source} for one in oses]
    )  # fmt: skip
    console.table(
        ("os", "glibc", "gcc", "image", "source"),
        [(one.id, one.glibc, one.gcc, one.image, one.source) for one in oses],
    )


def _one(component: Component, console: Console) -> None:
    console.data([_row(release) for release in component.releases])
    console.table(
        ("version", "variant", "needs", "where it comes from", "row", "source"),
        [
            (
                release.version,
                release.variant,
                "; ".join(_needs(release)),
                release.origin,
                str(release.line),
                release.source + (" (medium confidence)" if release.confidence != "high" else ""),
            )
            for release in component.releases
        ],
        title=f"{component.name}: {component.title} ({component.file})",
    )


def _needs(release: Release) -> list[str]:
    kinds: tuple[tuple[str, Mapping[str, tuple[str, ...]]], ...] = (
        ("", release.requires),
        ("", release.constrains),
        ("", release.pairs),
        ("known with ", release.known),
        ("made for ", release.warns),
    )
    return [
        f"{said}{name} {' or '.join(wishes)}"
        for said, asked in kinds
        for name, wishes in asked.items()
    ]


def _row(release: Release) -> dict[str, object]:
    from dataclasses import asdict

    return {name: value for name, value in asdict(release).items() if value not in ((), {}, "")}
