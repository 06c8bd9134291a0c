"""Define `imagegen catalog`, which shows the releases that are known, and proposes new ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from imagegen.cli import options

if TYPE_CHECKING:
    from pathlib import Path

    from imagegen.console.console import Console


class _Catalog(click.Group):
    """Runs `show` for `catalog` and `catalog COMPONENT`; only `refresh` is a command of its own."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args[:1] not in (["refresh"], ["--help"], ["-h"]):
            args = ["show", *args]
        return super().parse_args(ctx, args)


@click.group("catalog", cls=_Catalog)
def command() -> None:
    """All components, or every release of one with what it needs and the source of the fact."""


@command.command("show")
@click.argument("component", required=False)
@click.option("--verbose", is_flag=True, help="also the source of each fact, and its file and line")
@click.option("--rules", is_flag=True, help="all rules that warnings name")
@click.option("--rule", metavar="NAME", help="what a rule says, why, and where that stands")
@click.option("--known-bad", is_flag=True, help="all combinations that are known to fail")
@click.option("--proven", is_flag=True, help="what was built and validated, and what failed")
@options.common
def show_command(
    component: str | None,
    verbose: bool,
    rules: bool,
    rule: str | None,
    known_bad: bool,
    proven: bool,
    console: Console,
    overlay: Path | None,
) -> None:
    """All components, or every release of one."""
    from imagegen.workflow.catalog import (
        show,
        show_known_bad,
        show_proofs,
        show_rule,
        show_rules,
    )

    if proven:
        show_proofs(overlay, console)
    elif known_bad:
        show_known_bad(overlay, console)
    elif rule is not None:
        show_rule(rule, overlay, console)
    elif rules:
        show_rules(overlay, console)
    else:
        show(component, overlay, console, verbose=verbose)


@command.command("refresh")
@click.argument("component", required=False)
@click.option(
    "--all",
    "every",
    is_flag=True,
    help="without COMPONENT: of all; with it: also releases older than all known ones",
)
@click.option("--write", is_flag=True, help="write a patch to review: catalog-refresh.diff")
@click.option("--limit", type=click.IntRange(1), default=10, show_default=True, help="most rows")
@click.option(
    "--metadata",
    is_flag=True,
    help="also what each wheel asks for by itself (pip before 23.3 downloads it whole for that)",
)
@options.common
def refresh_command(console: Console, **asked: Any) -> None:
    """Propose rows for releases that the index of this host's pip has and the catalog has not.

    The catalog stays as it is: a maintainer completes and checks the rows.
    """
    from imagegen.workflow.catalog import RefreshOptions, refresh

    refresh(RefreshOptions(**asked), console)
