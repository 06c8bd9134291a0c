"""Define `imagegen check-sources`, which asks whether all that cells need is available."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from imagegen.cli import options

if TYPE_CHECKING:
    from imagegen.console.console import Console


@click.command("check-sources")
@options.matrix
@options.cells
@options.ca_bundle
@options.common
def command(console: Console, **asked: Any) -> None:
    """Prove that bases, packages, wheels and vendor parts can be had, before building."""
    from imagegen.workflow.check_sources import CheckOptions, check_sources

    check_sources(CheckOptions(**asked), console)
